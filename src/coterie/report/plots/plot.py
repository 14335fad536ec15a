"""``coterie.plot``: plots of run folders, from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from coterie.runs.saved_run import SavedRun


def plot(
    runs: str | os.PathLike[str] | SavedRun | Sequence[str | os.PathLike[str] | SavedRun],
    subject: str,
    output: str | os.PathLike[str],
    *,
    labels: Sequence[object] | None = None,
    color: str = "cluster",
    sample: int | None = None,
    device: str = "auto",
) -> Path:
    """Write a plot of a run folder to a file and return its path; for several runs, their maps side by side.

    The plot shows the clusters as they are now, with the edits made in ``coterie explore``. PNG and SVG need the extra
    ``plot``, HTML the extra ``plotly``.

    Parameters
    ----------
    runs:
        A run folder, or a :class:`coterie.Run`; or several of the same texts.
    subject:
        ``map``, ``curves`` (every loss term), ``sizes`` (of the clusters), ``confusion`` (true labels against
        clusters), ``stages`` (maps of the snapshots), ``similarity`` (cosines between the clusters' means) or ``k``
        (the criteria behind the number of clusters, after ``-k auto``).
    output:
        ``FILE.png``, ``FILE.svg`` or ``FILE.html``.
    labels:
        True labels, one per row of the run, ``None`` where there is none; for ``confusion`` and ``color="label"``.
    color:
        What a map is coloured by: ``cluster`` or ``label``.
    sample:
        The largest number of texts on a map.
    device:
        Where texts are embedded: ``auto``, ``cpu`` or ``cuda``.
    """
    from coterie.errors import InputError
    from coterie.report.plots.matplotlib_plots import check_ending, write_plot
    from coterie.report.plots.plot_data import build_plot
    from coterie.report.report_model import ReportModel

    path = Path(output)
    check_ending(path)
    given = [runs] if isinstance(runs, str | os.PathLike | SavedRun) else list(runs)
    opened = [each if isinstance(each, SavedRun) else SavedRun.open(each, device=device) for each in given]
    reports = [ReportModel(run, labels=labels) for run in opened]
    for report in reports:
        if labels is not None and len(labels) != len(report.run.corpus):
            raise InputError(f"{len(labels):,} labels, but {report.run.folder} has {len(report.run.corpus):,} rows")
    write_plot(build_plot(reports, subject, color=color, sample=sample), path)
    return path
