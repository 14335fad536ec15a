"""The content of a report as JSON: everything the page shows, computed once."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.describe.breakdown import Breakdown, with_breakdowns
from coterie.describe.cards import ClusterCard
from coterie.describe.partition_changes import compare_partitions
from coterie.report.html.headline import build_headline, sentence_without_criteria
from coterie.report.html.rendering import script_json
from coterie.report.label_comparison import confusion_table, coverage_by_confidence, main_labels, numbered_labels
from coterie.report.map_panels import MapPanel
from coterie.report.projection import ProjectionKind
from coterie.report.report_model import MAX_POINTS, ReportModel
from coterie.runs.saved_run import SavedRun

# Bytes that the texts of the map may take in the page, so that it opens quickly.
MAP_TEXT_BYTES = 4_000_000
# Bytes that the texts of the cluster cards may take.
CARD_TEXT_BYTES = 1_000_000
# Characters of a text at most; the rest adds little in a list or a tooltip.
MAX_TEXT_LENGTH = 400
# Characters that a text keeps even where all together take more bytes than they may: less is not readable.
MIN_TEXT_LENGTH = 40
# By how many characters all texts are shortened at a time until they fit.
SHORTENING_STEP = 10
# What coordinates between -1 and 1 are multiplied by, to use the range of 16-bit integers.
COORDINATE_SCALE = 32_000


@dataclass(frozen=True)
class ReportData:
    """What a report shows.

    Attributes
    ----------
    content:
        Ready for JSON; arrays are base64 of their little-endian numbers.
    cards:
        The clusters, the largest first.
    model:
        What the content was computed from.
    """

    content: dict[str, Any]
    cards: tuple[ClusterCard, ...]
    model: ReportModel


def build_report(
    run: SavedRun,
    *,
    labels: Sequence[object] | None = None,
    kind: ProjectionKind = "auto",
    points: int = MAX_POINTS,
    with_texts: bool = True,
    by: Sequence[Breakdown] = (),
) -> ReportData:
    """Compute everything that the report of ``run`` shows.

    Parameters
    ----------
    run:
        The saved run.
    labels:
        True labels, one per row, where they are known; ``None`` for a row without one.
    kind:
        How the map is made: see :func:`~coterie.report.projection.project`.
    points:
        The largest number of texts on the map. If there are more, a sample is shown.
    with_texts:
        ``False`` leaves all texts out of the report; keywords and names, which are made of their words, stay.
    by:
        How the clusters spread over other columns.
    """
    model = ReportModel(run, labels=labels, kind=kind, points=points)
    cards = with_breakdowns(model.cards, by) if by else model.cards
    content: dict[str, Any] = {
        "about": _about(run, with_texts),
        # Edits merge clusters away or mark them as noise, so ids may have gaps.
        "clusters": _card_contents(cards, with_texts),
        "n_ids": run.n_ids,
        "by": {},
        "points": {
            "count": len(model.rows),
            **pack_coordinates(model.coordinates),
            "cluster": pack(model.clusters, np.int32),
            "runner_up": pack(model.runner_ups, np.int32),
            "confidence": pack(np.round(255 * np.clip(model.confidence, 0, 1)), np.uint8),
            "texts": _shorten(model.texts, _fitting_length(model.texts, MAP_TEXT_BYTES)) if with_texts else None,
        },
        "coverage": coverage_by_confidence(run.confidence, run.labels, labels),
        "loss_curves": model.loss_curves,
        "choice": run.about.get("choice_of_k"),
        "trained": None if run.initial_labels is None else _trained(model, with_texts),
        "snapshots": [_panel(panel) for panel in model.snapshot_panels],
        "calibrated": run.calibration is not None,
        "labels_table": None if labels is None else confusion_table(labels, run.labels),
    }
    if labels is not None:
        _add_labels(content, model, labels)
    add_breakdowns(content, by)
    content["headline"] = build_headline(content)
    return ReportData(content, tuple(cards), model)


def _add_labels(content: dict[str, Any], model: ReportModel, labels: Sequence[object]) -> None:
    """Add the most frequent label of each cluster, and the label of every point."""
    most_frequent = main_labels(labels, model.run.labels)
    for card in content["clusters"]:
        card["label"] = most_frequent.get(card["id"])
    names, numbers = numbered_labels([labels[row] for row in model.rows])
    sizes = np.bincount(numbers[numbers >= 0], minlength=len(names)).tolist()
    content["labels"] = [{"name": name, "size": size} for name, size in zip(names, sizes, strict=True)]
    content["points"]["label"] = pack(numbers, np.int32)


def _about(run: SavedRun, with_texts: bool) -> dict[str, Any]:
    about, labels, edited = run.about, run.labels, run.edited
    return {
        "title": Path(about["input"]["source"]).name,
        "method": about["method"],
        "encoder": about["settings"].get("encoder"),
        "seed": about["seed"],
        "rows": len(labels),
        "distinct": len(run.corpus.distinct),
        "unassigned": int((labels < 0).sum()),
        "noise": 0 if edited is None else int(((labels < 0) & ~run.corpus.empty).sum()),
        "abstained": about.get("abstained", 0),
        "min_confidence": about.get("min_confidence", 0.0),
        "clusters": len(np.unique(labels[labels >= 0])),
        "edits": 0 if edited is None else len(edited.applied),
        "notes": [*about["notes"], *(() if edited is None else edited.notes)],
        "version": about["versions"]["coterie"],
        "with_texts": with_texts,
    }


def add_breakdowns(content: dict[str, Any], by: Sequence[Breakdown]) -> None:
    """Add what concerns the columns as a whole to the content of a report, and their notes."""
    content["by"] |= {breakdown.column: breakdown.to_dict() for breakdown in by}
    notes = content["about"]["notes"]
    notes_by_column = [breakdown.note for breakdown in by if breakdown.note]
    content["about"]["notes"] = list(dict.fromkeys([*notes, *notes_by_column]))


def _card_contents(cards: Sequence[ClusterCard], with_texts: bool) -> list[dict[str, Any]]:
    """Return the cards as dictionaries, with texts cut so that all of them fit into the page."""
    contents = [card.to_dict(with_texts=with_texts) for card in cards]
    texts = [text for card in contents for text in (*card["representatives"], *(b["text"] for b in card["borderline"]))]
    length = _fitting_length(texts, CARD_TEXT_BYTES)
    return [
        card
        | {
            "representatives": _shorten(card["representatives"], length),
            "borderline": [each | {"text": _cut(each["text"], length)} for each in card["borderline"]],
        }
        for card in contents
    ]


def _trained(model: ReportModel, with_texts: bool) -> dict[str, Any]:
    """Return the verdict on the training, maps before and after, and how the clusters changed."""
    verdict = model.run.training_verdict
    assert model.run.initial_labels is not None and verdict is not None
    # The clusters as fitted: later edits are not what training did.
    before, after = model.run.initial_labels[model.rows], model.run.model.labels_[model.rows]
    examples = _shorten(model.texts, MAX_TEXT_LENGTH) if with_texts else None
    return {
        "criteria": [asdict(criterion) for criterion in verdict.criteria],
        "verdict": sentence_without_criteria(verdict),
        "changes": compare_partitions(before, after, examples).to_dict(),
        "panels": [_panel(panel) for panel in model.before_after_panels],
        "names": model.fitted_names,
    }


def _panel(panel: MapPanel) -> dict[str, str]:
    clusters, points = pack(panel.clusters, np.int32), pack(panel.points, np.int32)
    return {"title": panel.title, **pack_coordinates(panel.coordinates), "cluster": clusters, "points": points}


def _fitting_length(texts: Sequence[str], budget: int) -> int:
    """Return the characters a text may have so that all of them, as the page writes them, fit into ``budget`` bytes."""
    lengths = np.array([min(len(text), MAX_TEXT_LENGTH) for text in texts], dtype=np.int64)
    # A letter may take one byte or four, and one that means something to HTML six.
    n_bytes = sum(len(script_json(text[:MAX_TEXT_LENGTH]).encode()) for text in texts)
    if n_bytes <= budget:
        return MAX_TEXT_LENGTH
    max_characters = int(lengths.sum() * budget / n_bytes)
    length = MAX_TEXT_LENGTH
    while length > MIN_TEXT_LENGTH and np.minimum(lengths, length).sum() > max_characters:
        length -= SHORTENING_STEP
    return length


def _shorten(texts: Sequence[str], length: int) -> list[str]:
    return [_cut(text, length) for text in texts]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def pack_coordinates(coordinates: NDArray[np.float32]) -> dict[str, str]:
    """Return coordinates between -1 and 1 as base64 of 16-bit integers, ``x`` and ``y`` apart."""
    scaled = np.clip(np.round(coordinates * COORDINATE_SCALE), -32_767, 32_767)
    return {"x": pack(scaled[:, 0], np.int16), "y": pack(scaled[:, 1], np.int16)}


def pack(values: NDArray[Any], dtype: Any) -> str:
    """Return base64 of the values as little-endian numbers of ``dtype``."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()).decode()
