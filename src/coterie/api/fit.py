"""Cluster texts into a run folder: what ``coterie fit`` does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.api.run import Run
from coterie.errors import SettingError

if TYPE_CHECKING:
    from coterie.describe.breakdown import Breakdown
    from coterie.describe.cards import ClusterCard
    from coterie.methods.base import ClusteringMethod
    from coterie.methods.cost_estimate import Estimate
    from coterie.runs.writing import FitRequest
    from coterie.selection.k_choice import ChosenK
    from coterie.text.corpus import Corpus

AUTO = "auto"
CHOICE_FILE = "k.svg"
# Parameters of a method that say how its encoder reads texts.
ENCODER_PARAMETERS = ("encoder", "pooling", "normalize", "max_length")


def fit(
    texts: object,
    n_clusters: int | str,
    method: str | None = None,
    *,
    output: str | os.PathLike[str] = "coterie-run",
    text_column: str | None = None,
    id_column: str | None = None,
    keep: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    seed: int = 0,
    sample: int | None = None,
    k_range: tuple[int, int] | None = None,
    encoder: str | None = None,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    snapshots: int = 0,
    min_confidence: float = 0.0,
    with_texts: bool = True,
    report: bool = True,
    overwrite: bool = False,
    progress: Callable[[str], object] | None = None,
) -> Run:
    """Cluster texts into a run folder and return it, opened: what ``coterie fit`` does.

    Parameters
    ----------
    texts:
        The path of a file (CSV, TSV, JSONL or TXT, each also .gz, or Parquet), a data frame, a list or a column of
        texts, or a :class:`~coterie.text.corpus.Corpus`.
    n_clusters:
        The number of clusters; ``"auto"``: selected without labels.
    method:
        The name of a method (``coterie methods`` lists them); by default ``"auto"``.
    output:
        The run folder to write.
    text_column, id_column:
        Of a file or a data frame, the column of texts (default: ``text``, or the only one) and a column of ids.
    keep:
        Other columns to carry along: one name, several, or ``"all"``.
    by:
        Columns to count each cluster by, values or dates: one name or several. They are kept too.
    seed:
        The same seed gives the same clusters.
    sample:
        Fit on a sample of this many distinct texts, and assign the others. Default: fit on all.
    k_range:
        For ``n_clusters="auto"``: the lowest and the highest number to try.
    encoder, device:
        A model's name or folder, and where it runs: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    settings:
        Parameters of the method by name, those of its training as ``"training.learning_rate"``.
    snapshots:
        Store embeddings and labels each time this many epochs have passed; 0: never.
    min_confidence:
        Texts below it are left unassigned in the assignments: cluster -1, status ``abstained``.
    with_texts:
        Whether the texts are written into the run folder.
    report:
        Whether to write ``report.html``, which shows the run.
    overwrite:
        Whether an existing run folder may be replaced.
    progress:
        Called with a sentence at each phase (``print``, say). With it, a progress bar shows the training, and the time
        that a long fit will take is estimated first.

    Examples
    --------
    >>> import tempfile
    >>> import coterie
    >>> texts = ["late parcel", "parcel late", "parcel late again", "lost password", "password lost"]
    >>> run = coterie.fit(texts, 2, method="tfidf", output=f"{tempfile.mkdtemp()}/run", report=False)
    >>> run.labels.tolist()
    [0, 0, 0, 1, 1]
    """
    from coterie.encoders.pretrained import keep_pretrained
    from coterie.runs.writing import FitRequest

    method = check_request(method, n_clusters, output, k_range, snapshots, overwrite)
    by = (by,) if isinstance(by, str) else by
    chosen = dict(settings or {}) | ({} if encoder is None else {"encoder": encoder})
    if snapshots:
        chosen["training.snapshot_every"] = snapshots
    began = time.perf_counter()
    corpus = _read(texts, text_column, id_column, keep, by)
    seconds = {"reading": time.perf_counter() - began}
    model = _build(method, n_clusters, seed, chosen, device, progress)
    with keep_pretrained():
        choice = None
        if n_clusters == AUTO:
            choice = _choose(model, corpus, k_range, seed, device, progress)
            seconds["choosing"] = time.perf_counter() - began - seconds["reading"]
        request = FitRequest(
            method,
            _name_of(texts),
            sample=sample,
            by=by,
            min_confidence=min_confidence,
            with_texts=with_texts,
            choice=choice,
            seconds=seconds,
        )
        return fit_model(model, corpus, Path(output), request, report=report, progress=progress)


def check_request(
    method: str | None,
    n_clusters: int | str,
    output: str | os.PathLike[str],
    k_range: tuple[int, int] | None,
    snapshots: int,
    overwrite: bool,
) -> str:
    """Refuse what cannot work before any text is read; return the name of the method."""
    from coterie.methods.registry import DEFAULT_METHOD, find_method
    from coterie.runs.folder import check_free_for_run

    check_free_for_run(Path(output), overwrite)
    info = find_method(method or DEFAULT_METHOD)
    if isinstance(n_clusters, str) and n_clusters != AUTO:
        raise SettingError(f"n_clusters={n_clusters!r} must be a whole number or {AUTO!r}")
    if k_range is not None and n_clusters != AUTO:
        raise SettingError(f"--k-range {k_range[0]}-{k_range[1]} is for -k auto; {n_clusters} clusters were asked for")
    if snapshots and not info.trains_encoder:
        raise SettingError(f"--snapshots needs a method that trains; {info.name} does not")
    return info.name


def fit_model(
    model: ClusteringMethod,
    corpus: Corpus,
    output: Path,
    request: FitRequest,
    *,
    report: bool = True,
    labels: Sequence[object] | None = None,
    progress: Callable[[str], object] | None = None,
) -> Run:
    """Fit ``model`` and write its run folder; ``labels`` are for the report alone."""
    from coterie.runs.writing import fit_run

    model.check(corpus, request.sample)
    if progress is not None:
        progress(f"{len(corpus):,} rows from {request.source}; {model.n_clusters} clusters by {request.method}")
        request = replace(request, estimate=_estimate(model, corpus, request.sample, progress))

    def present(run: Run, counted: Sequence[Breakdown]) -> Sequence[ClusterCard] | None:
        from coterie.api.reporting import REPORT_FILE, write_report

        if request.choice is not None:
            _plot_choice(request.choice, run.folder)
        if not report:
            return None
        return write_report(run, run.folder / REPORT_FILE, labels, with_texts=request.with_texts, by=counted)

    return fit_run(Run, model, corpus, output, request, present)


def _read(
    texts: object, text_column: str | None, id_column: str | None, keep: str | Sequence[str], by: Sequence[str]
) -> Corpus:
    from coterie.text.reading import read_corpus

    names = (keep,) if isinstance(keep, str) else tuple(keep)
    kept = "all" if names == ("all",) else (*names, *by)
    corpus = read_corpus(texts, text_column=text_column, id_column=id_column, keep_columns=kept)
    for name in by:
        if name not in corpus.columns:  # with all columns kept, the column of the texts or of the ids
            raise SettingError(f"--by {name}: this column is read as texts or ids; name it under --keep to count by it")
    return corpus


def _build(
    method: str,
    n_clusters: int | str,
    seed: int,
    settings: Mapping[str, Any],
    device: str,
    progress: Callable[[str], object] | None,
) -> ClusteringMethod:
    from coterie.methods.build_method import build_method

    common = {"device": device, "training.progress": progress is not None}
    # Wrong settings are refused before the number of clusters is selected, which may take a minute.
    return build_method(method, 2 if n_clusters == AUTO else int(n_clusters), seed, settings, common)


def _choose(
    model: ClusteringMethod,
    corpus: Corpus,
    k_range: tuple[int, int] | None,
    seed: int,
    device: str,
    progress: Callable[[str], object] | None,
) -> ChosenK:
    """Choose the number of clusters, by the method's own encoder or the default one; set it."""
    from coterie.selection.k_choice import choose_k

    if progress is not None:
        progress("Choosing the number of clusters ...")
    parameters = model.get_params(deep=False)
    encoder = {name: parameters[name] for name in ENCODER_PARAMETERS if name in parameters}
    found = choose_k(corpus, k_range=k_range, device=device, seed=seed, **encoder)
    model.set_params(n_clusters=found.k)
    return found


def _plot_choice(choice: ChosenK, folder: Path) -> None:
    """Plot the criteria behind the number of clusters, where matplotlib is installed."""
    from coterie.errors import MissingExtraError
    from coterie.report.plots.matplotlib_plots import write_plot
    from coterie.report.plots.plot_data import build_cluster_count_plot

    try:
        write_plot(build_cluster_count_plot(choice.to_dict()), folder / CHOICE_FILE)
    except MissingExtraError:
        return


def _estimate(
    model: ClusteringMethod, corpus: Corpus, sample: int | None, progress: Callable[[str], object]
) -> Estimate | None:
    """Estimate what the fit will cost, where that is long enough to matter."""
    from coterie.formatting import duration
    from coterie.methods.cost_estimate import estimate, worth_estimating

    if not worth_estimating(model, corpus, sample):
        return None
    progress("Trying it on a few texts first, to estimate how long it will take ...")
    found = estimate(model, corpus, sample)
    if found is None:
        return None
    gpu = f", {found.device_memory / 1e9:.1f} GB on the GPU" if found.device_memory else ""
    progress(
        f"This will take at most about {duration(found.seconds)} and {found.memory / 1e9:.1f} GB of memory{gpu} "
        f"(estimated by a trial of {found.trial_seconds:.0f} s on this machine)."
    )
    return found


def _name_of(texts: object) -> str:
    """Return how a run calls the place its texts came from: a path, or the type of a table."""
    from coterie.text.corpus import type_name

    return str(texts) if isinstance(texts, (str, os.PathLike)) else type_name(texts)
