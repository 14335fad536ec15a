"""Fit a method and write the run folder: all of it, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from coterie.encoders.pretrained import keep_pretrained
from coterie.files import atomic_folder
from coterie.runs.assignments_file import ASSIGNMENTS_FILE, AssignmentWriter
from coterie.runs.clusters_file import write_cards
from coterie.runs.fitted_run import MODEL_FOLDER
from coterie.runs.run_file import versions, write_about
from coterie.runs.saved_run import SavedRun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from coterie.describe.breakdown import Breakdown
    from coterie.describe.cards import ClusterCard
    from coterie.methods.base import ClusteringMethod
    from coterie.methods.cost_estimate import Estimate
    from coterie.methods.trained import Clock
    from coterie.runs.calibration import Calibration
    from coterie.selection.k_choice import ChosenK
    from coterie.selection.training_verdict import TrainingVerdict
    from coterie.text.corpus import Corpus
    from coterie.types import ClusterSummary

AnyRun = TypeVar("AnyRun", bound=SavedRun)


@dataclass(frozen=True)
class FitRequest:
    """The facts about a fit that ``run.json`` stores beside those of the method and the texts.

    Attributes
    ----------
    method, source:
        The registered name of the method, and where the texts came from.
    sample:
        How many distinct texts to learn on; ``None``: on all.
    by:
        Kept columns that clusters are counted by.
    min_confidence:
        Texts below it are left unassigned.
    with_texts:
        Whether texts are written.
    choice, estimate:
        How the number of clusters was chosen, and what the fit was expected to cost, where that was asked.
    seconds:
        What earlier phases took, by name.
    """

    method: str
    source: str
    sample: int | None = None
    by: Sequence[str] = ()
    min_confidence: float = 0.0
    with_texts: bool = True
    choice: ChosenK | None = None
    estimate: Estimate | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Outcome:
    """What is known after the fit, before anything is written."""

    confidence: NDArray[np.float64]
    calibration: Calibration | None
    verdict: TrainingVerdict | None
    summaries: list[ClusterSummary]


def fit_run(
    kind: type[AnyRun],
    model: ClusteringMethod,
    corpus: Corpus,
    output: Path,
    request: FitRequest,
    present: Callable[[AnyRun, Sequence[Breakdown]], Sequence[ClusterCard] | None],
) -> AnyRun:
    """Fit ``model`` and write its run folder; return the run, opened as ``kind``.

    ``present`` adds to the unfinished folder what people look at, given the counts by columns, and returns the cards of
    the clusters where it made some. If it fails, the run is kept without them and the error is raised: training may
    have taken hours.
    """
    failure: BaseException | None = None
    # The folder is opened first: a place that cannot be written to should not cost a training run.
    with atomic_folder(output) as folder, keep_pretrained():
        run, counted = _fit_into(folder, kind, model, corpus, request)
        cards = None
        try:
            cards = present(run, counted)
        except BaseException as error:  # Ctrl-C too
            failure = error
        write_cards(folder, cards or _plain_cards(run, counted), with_texts=request.with_texts)
    run.move_to(output)
    if failure is not None:
        raise failure
    return run


def _fit_into(
    folder: Path, kind: type[AnyRun], model: ClusteringMethod, corpus: Corpus, request: FitRequest
) -> tuple[AnyRun, list[Breakdown]]:
    from coterie.describe.breakdown import break_down
    from coterie.methods.trained import Clock

    began = time.perf_counter()
    clock = Clock(dict(request.seconds))
    model.fit(corpus, sample=request.sample)
    clock.lap("fitting")
    outcome = _judge(model, corpus, clock)
    with (folder / ASSIGNMENTS_FILE).open("w", encoding="utf-8", newline="") as stream:
        writer = AssignmentWriter(stream, with_texts=request.with_texts, min_confidence=request.min_confidence)
        writer.write(corpus, model.labels_, outcome.confidence)
    clock.lap("writing")
    counted = [break_down(name, corpus.columns[name], model.labels_) for name in request.by]
    _save_model(folder, model, corpus, outcome.calibration)
    clock.lap("saving")
    about = _about(model, corpus, request, outcome, writer.abstained)
    about["seconds"] = {"total": time.perf_counter() - began, **clock.seconds, **model.timings_}
    about["history"] = model.history_.to_dict()
    if request.choice is not None:
        about["choice_of_k"] = request.choice.to_dict()
    write_about(folder, about)
    run = kind.of_fit(folder, about, corpus, model, calibration=outcome.calibration, summaries=outcome.summaries)
    run.column_notes = tuple(each.note for each in counted if each.note)
    return run, counted


def _judge(model: ClusteringMethod, corpus: Corpus, clock: Clock) -> _Outcome:
    """Calibrate, judge the training and describe the clusters."""
    from coterie.describe.clusters import describe_clusters
    from coterie.runs.calibration.of_model import calibrate_sample, sample_texts
    from coterie.runs.verdict import verdict_of_fit

    sample = sample_texts(model, corpus)
    calibration = None if sample is None else calibrate_sample(model, sample)
    confidence = model.confidence_
    if calibration is not None:
        confidence = calibration.confidence(model.labels_, model.confidence_)
    clock.lap("calibrating")
    verdict = verdict_of_fit(model, corpus, sample)
    clock.lap("judging")
    summaries = describe_clusters(
        corpus.texts,
        model.labels_,
        confidence=confidence,
        center_distance=model.center_distance_,
        topics=model.cluster_topics(),
    )
    clock.lap("describing")
    return _Outcome(confidence, calibration, verdict, summaries)


def _save_model(folder: Path, model: ClusteringMethod, corpus: Corpus, calibration: Calibration | None) -> None:
    from coterie.runs.snapshots_file import write_snapshots

    model.save_pretrained(folder / MODEL_FOLDER)
    if calibration is not None:
        calibration.write(folder / MODEL_FOLDER)
    write_snapshots(folder, model, corpus)


def _about(
    model: ClusteringMethod, corpus: Corpus, request: FitRequest, outcome: _Outcome, abstained: int
) -> dict[str, Any]:
    """Return ``run.json`` without times and history."""
    return {
        "method": request.method,
        "settings": model.settings(),
        "seed": model.seed_,
        "sample": request.sample,
        "input": {
            "source": request.source,
            "text_column": corpus.text_column,
            "id_column": corpus.id_column,
            "kept": list(corpus.columns),
        },
        "by": list(request.by),
        "min_confidence": request.min_confidence,
        "abstained": abstained,
        "rows": len(corpus),
        "distinct_texts": len(corpus.distinct),
        "empty_rows": int(corpus.empty.sum()),
        "notes": list(model.notes_),
        "training_verdict": None if outcome.verdict is None else outcome.verdict.to_dict(),
        "versions": versions(),
        **model.provenance(),
        "estimate": None if request.estimate is None else asdict(request.estimate),
    }


def _plain_cards(run: SavedRun, counted: Sequence[Breakdown]) -> list[ClusterCard]:
    """Return cards of the clusters without the measures that need vectors, which a report adds."""
    from coterie.describe.breakdown import with_breakdowns
    from coterie.describe.cards import build_cards

    cards = build_cards(
        run.summaries or [], run.corpus.texts, run.fitted_labels, vectors=None, confidence=run.confidence
    )
    return with_breakdowns(cards, counted)
