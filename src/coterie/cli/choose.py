"""``-k auto`` of ``coterie fit``: what is asked for, the choice, and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.selection import ChosenK
    from coterie.text.corpus import Corpus

AUTO = "auto"
PICTURE_FILE = "k.svg"
# Settings of a method that say how its encoder reads texts.
_ENCODER_SETTINGS = ("encoder", "pooling", "normalize", "max_length")


def asked_clusters(given: str | int | None, in_config: int | None, k_range: str | None) -> int | None:
    """How many clusters were asked for; ``None`` for ``auto``."""
    from coterie.errors import SettingError

    asked = in_config if given is None else given
    if asked is None:
        raise typer.BadParameter("how many clusters to make? (auto: chosen for you)", param_hint="--clusters / -k")
    if str(asked).strip().lower() == AUTO:
        return None
    try:
        number = int(asked)
    except ValueError:
        raise typer.BadParameter(
            f"{asked!r} is neither a whole number nor 'auto'", param_hint="--clusters / -k"
        ) from None
    if k_range is not None:
        raise SettingError(f"--k-range {k_range} is for -k auto; {number} clusters were asked for")
    return number


def choose_for(
    model: ClusteringMethod, corpus: Corpus, k_range: tuple[int, int] | None, seed: int, device: str, quiet: bool
) -> ChosenK:
    """Choose for the texts of ``corpus`` by the method's own encoder, or the default one where it has none."""
    from coterie.selection import choose_k

    if not quiet:
        typer.echo("Choosing the number of clusters ...", err=True)
    known = model.get_params(deep=False)
    settings = {name: known[name] for name in _ENCODER_SETTINGS if name in known}
    found = choose_k(corpus, k_range=k_range, device=device, seed=seed, **settings)
    if not quiet:
        for sentence in found.why:
            typer.echo(f"k: {sentence}.")
    return found


def draw_choice(choice: ChosenK, folder: Path) -> None:
    """The picture of why, where matplotlib is installed."""
    from coterie.errors import MissingExtraError
    from coterie.report.plots.matplotlib_plots import write_plot
    from coterie.report.plots.plot_data import build_cluster_count_plot

    try:
        write_plot(build_cluster_count_plot(choice.to_dict()), folder / PICTURE_FILE)
    except MissingExtraError:
        return
