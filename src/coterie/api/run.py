"""``coterie.Run``: a run folder with its report, its plots and the explorer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coterie.errors import InputError
from coterie.runs.saved_run import SavedRun

if TYPE_CHECKING:
    from coterie.report.projection import ProjectionKind


class Run(SavedRun):
    """A run folder, opened: what ``coterie fit`` wrote, with the edits that people made to it.

    Opening is quick: the model, the map and the calibration are loaded when they are first used, and kept. Nothing
    here changes what the fit wrote; edits are in a file of their own and can be undone.

    Attributes
    ----------
    assignments:
        Every row with its cluster as it is now: a :class:`~coterie.runs.table.Table`, which data frames take.
    clusters:
        The clusters as they are now: :class:`~coterie.describe.cards.ClusterCard`, the name, size, keywords and
        representative texts of each.
    labels, confidence:
        The cluster of every row as it is now (-1: none), and the probability that it is right.
    names:
        The name of each cluster, by id.
    fitted_labels, initial_labels:
        The cluster of every row as it was fitted, and before training (``None`` without training).
    training_verdict:
        Whether fine-tuning helped, judged without labels; ``None`` without training.
    model:
        The fitted method alone, without edits and calibration.
    about:
        The content of ``run.json``: method, settings, notes, versions, history.
    folder:
        The run folder.

    Examples
    --------
    >>> import tempfile
    >>> import coterie
    >>> texts, folder = ["late parcel", "parcel late again", "lost password", "password lost"], tempfile.mkdtemp()
    >>> made = coterie.fit(texts, 2, method="tfidf", output=f"{folder}/run", report=False)
    >>> run = coterie.Run.open(f"{folder}/run")
    >>> run.predict(["my parcel is late"])["cluster_name"] == [run.names[run.labels[0]]]
    True
    """

    def report(
        self,
        output: str | os.PathLike[str] | None = None,
        *,
        labels: Sequence[object] | None = None,
        map: ProjectionKind = "tsne",
        points: int = 20_000,
        by: str | Sequence[str] = (),
        with_texts: bool = True,
    ) -> Path:
        """Write the run as one HTML page, as it is now, and return its path.

        Parameters
        ----------
        output:
            The page to write; by default ``report.html`` in the run folder.
        labels:
            True labels, one per row of the run (``None`` where there is none), to compare with.
        map:
            How the map is made: ``"tsne"``, ``"umap"`` (an extra) or ``"pca"``.
        points:
            The largest number of texts on the map. If there are more, the map shows a sample of this size.
        by:
            One or several kept columns to count the clusters by. Default: those of the fit.
        with_texts:
            Whether the page holds texts.
        """
        from coterie.api.reporting import report_run

        self.refresh()
        return report_run(
            self,
            None if output is None else Path(output),
            labels=labels,
            map=map,
            points=points,
            by=(by,) if isinstance(by, str) else by,
            with_texts=with_texts,
        ).path

    def plot(
        self,
        subject: str,
        output: str | os.PathLike[str],
        *,
        labels: Sequence[object] | None = None,
        color: str = "cluster",
        sample: int | None = None,
    ) -> Path:
        """Write a plot of the run; the parameters are those of :func:`coterie.plot`."""
        from coterie.report.plots.plot import plot

        self.refresh()
        return plot(self, subject, output, labels=labels, color=color, sample=sample)

    def explore(
        self,
        *,
        port: int = 8640,
        host: str = "127.0.0.1",
        browser: bool = True,
        progress: Callable[[str], object] | None = None,
        on_ready: Callable[[str], object] | None = None,
    ) -> None:
        """Open the run in the browser, to search, correct and export its clusters, until Ctrl-C ends it.

        Every edit is stored in ``edits.jsonl`` in the run folder. The run and ``coterie predict`` apply it. Needs the
        extra ``app``.

        Parameters
        ----------
        port, host:
            The address to listen on. Port 0 selects a free one. Only this machine can reach the default host.
        browser:
            Whether to open a browser window.
        progress:
            Called with sentences about steps that take long and about who can reach the page, such as ``print``.
        on_ready:
            Called with the address when the page can be opened.
        """
        try:
            from coterie.app.serving import serve
        except ModuleNotFoundError as error:
            if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic"):
                raise
            raise InputError("exploring needs FastAPI: pip install 'coterie[app]'") from error
        serve(self, port=port, host=host, browser=browser, progress=progress, on_ready=on_ready)
        self.refresh()
