"""Pictures of run folders, from Python: what ``coterie plot`` draws."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def plot(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    subject: str,
    output: str | os.PathLike[str],
    *,
    labels: Sequence[object] | None = None,
    color: str = "cluster",
    sample: int | None = None,
    device: str = "auto",
) -> Path:
    """Draw a picture of a run folder into a file; of several runs, their maps side by side. Returns the file.

    Clusters are drawn as they are now, with what was changed in ``coterie explore``. PNG and SVG need the extra
    ``plot``, HTML the extra ``plotly``.

    Parameters
    ----------
    runs:
        A folder of ``coterie fit``, or several made of the same texts.
    subject:
        ``map``, ``curves`` (every loss term), ``sizes`` (of the clusters), ``confusion`` (true labels against
        clusters), ``stages`` (maps of stored snapshots), ``similarity`` (cosines between the clusters' means) or ``k``
        (why so many clusters, after ``-k auto``).
    output:
        ``FILE.png``, ``FILE.svg`` or ``FILE.html``.
    labels:
        True labels, one a row of the run, ``None`` where there is none; for ``confusion`` and ``color="label"``.
    color:
        Of a map: by ``cluster`` or by ``label``.
    sample:
        Texts of a map at most.
    device:
        Where texts are embedded: ``auto``, ``cpu`` or ``cuda``.
    """
    from coterie.errors import InputError
    from coterie.report.plots.matplotlib_plots import check_ending, draw_picture
    from coterie.report.plots.pictures import picture_of
    from coterie.report.report_model import Shown
    from coterie.runs.saved_run import read_run

    path = Path(output)
    check_ending(path)
    folders = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
    shown = [Shown(read_run(Path(folder), device=device), labels=labels) for folder in folders]
    for each in shown:
        if labels is not None and len(labels) != len(each.run.corpus):
            raise InputError(f"{len(labels):,} labels, but {each.run.folder} has {len(each.run.corpus):,} rows")
    draw_picture(picture_of(shown, subject, color=color, sample=sample), path)
    return path
