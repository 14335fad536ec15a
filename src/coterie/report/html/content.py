"""All that a report shows, computed once from a run folder; whoever displays it computes nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.describe.breakdown import Breakdown, with_breakdowns
from coterie.describe.cards import ClusterCard
from coterie.describe.changes import compare_partitions
from coterie.formatting import percent
from coterie.report.html.page_json import script_json
from coterie.report.projection import Kind
from coterie.report.report_model import MOST_POINTS, Panel, Shown
from coterie.report.truth import coverage, main_labels, numbered_labels, truth_table
from coterie.runs.saved_run import Run
from coterie.selection.training_verdict import judge_training

# Bytes that the texts of the map, and those of the cards, may take in the page; and characters of one text.
TEXT_BUDGET, CARD_BUDGET, LONGEST_TEXT, SHORTEST_TEXT = 4_000_000, 1_000_000, 400, 40


@dataclass(frozen=True)
class ReportData:
    """What a report shows.

    Attributes
    ----------
    content:
        Ready for JSON; tables of numbers are base64 of little-endian arrays.
    cards:
        The clusters, the largest first.
    shown:
        What it was made from.
    """

    content: dict[str, Any]
    cards: tuple[ClusterCard, ...]
    shown: Shown


def build_report(
    run: Run,
    *,
    labels: Sequence[object] | None = None,
    kind: Kind = "auto",
    points: int = MOST_POINTS,
    with_texts: bool = True,
    by: Sequence[Breakdown] = (),
) -> ReportData:
    """Everything a report shows of ``run``.

    Parameters
    ----------
    labels:
        True labels, row for row, where they are known; ``None`` for a row without one.
    kind:
        How the map is made: see :func:`~coterie.report.projection.project`.
    points:
        Texts on the map at most; of more, as many are drawn.
    with_texts:
        Without, no text of the data stands in the report; keywords and names, which are made of its words, do.
    by:
        How the clusters spread over other columns.
    """
    shown = Shown(run, labels=labels, kind=kind, points=points)
    cards = with_breakdowns(shown.cards, by) if by else shown.cards
    content: dict[str, Any] = {
        "about": _about(run, with_texts),
        # Of clusters that people merged away or marked as noise there is none, so ids may have gaps.
        "clusters": _card_contents(cards, with_texts),
        "ids": run.n_ids,
        "by": {},
        "points": {
            "count": len(shown.rows),
            **packed_places(shown.places),
            "cluster": packed(shown.clusters, np.int32),
            "runner_up": packed(shown.runner_up, np.int32),
            "confidence": packed(np.round(255 * np.clip(shown.confidence, 0, 1)), np.uint8),
            "texts": _shortened(shown.texts) if with_texts else None,
        },
        "coverage": coverage(run.confidence, run.labels, labels),
        "curves": shown.curves,
        "choice": run.about.get("choice_of_k"),
        "trained": None if run.initial_labels is None else _trained(shown, with_texts),
        "stages": [_panel(panel) for panel in shown.stages],
        "calibrated": run.calibration is not None,
        "truth": None if labels is None else truth_table(labels, run.labels),
    }
    if labels is not None:
        _tell_labels(content, shown, labels)
    tell_breakdowns(content, by)
    content["headline"] = headline(content)
    return ReportData(content, tuple(cards), shown)


def _tell_labels(content: dict[str, Any], shown: Shown, labels: Sequence[object]) -> None:
    """What most texts of a cluster are labelled, and the label of every point."""
    most = main_labels(labels, shown.run.labels)
    for card in content["clusters"]:
        card["label"] = most.get(card["id"])
    names, numbers = numbered_labels([labels[row] for row in shown.rows])
    sizes = np.bincount(numbers[numbers >= 0], minlength=len(names)).tolist()
    content["labels"] = [{"name": name, "size": size} for name, size in zip(names, sizes, strict=True)]
    content["points"]["label"] = packed(numbers, np.int32)


def _about(run: Run, with_texts: bool) -> dict[str, Any]:
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


def tell_breakdowns(content: dict[str, Any], by: Sequence[Breakdown]) -> None:
    """What is told of the columns as a whole, into the content of a report."""
    content["by"] |= {each.column: each.to_dict() for each in by}
    notes = content["about"]["notes"]
    content["about"]["notes"] = list(dict.fromkeys([*notes, *(each.note for each in by if each.note)]))


def _card_contents(cards: Sequence[ClusterCard], with_texts: bool) -> list[dict[str, Any]]:
    """The clusters as the page shows them: no text is too long for a card, nor all of them for a page."""
    told = [card.to_dict(with_texts=with_texts) for card in cards]
    texts = [text for each in told for text in (*each["representatives"], *(b["text"] for b in each["borderline"]))]
    longest = _longest(texts, CARD_BUDGET)
    return [
        each
        | {
            "representatives": [_cut(text, longest) for text in each["representatives"]],
            "borderline": [one | {"text": _cut(one["text"], longest)} for one in each["borderline"]],
        }
        for each in told
    ]


def headline(content: Mapping[str, Any]) -> list[str]:
    """What a reader should know first, in sentences."""
    about, cards = content["about"], content["clusters"]
    largest = max(cards, key=lambda card: card["size"])
    sizes = [card["size"] for card in cards]
    sentences = [
        f"{about['rows']:,} texts in {about['clusters']:,} groups; the largest is “{largest['name']}” "
        f"({largest['size']:,}, {percent(largest['share'])}), the smallest has {min(sizes):,}."
    ]
    if about.get("edits"):  # a page made before there was this line is told anew too
        sentences.append(
            f"{_are(about['edits'], 'edit')} applied that people made in the explorer (edits.jsonl): names and groups "
            "are as they left them."
        )
    if about["unassigned"]:
        sentences.append(f"{_are(about['unassigned'], 'row')} in no group.")
    if about["abstained"]:
        sentences.append(
            f"{_are(about['abstained'], 'text')} below the confidence of {about['min_confidence']:g} that was asked "
            "for: unassigned in assignments.csv, and here in the group that fits best."
        )
    known = [card["stability"] for card in cards if card["stability"] is not None]
    if known:
        stable, shaky = sum(each >= 0.75 for each in known), sum(each < 0.5 for each in known)
        again = f"Of {len(known)} groups {stable} {'is' if stable == 1 else 'are'} found again when the clustering is "
        care = f", {shaky} {'is' if shaky == 1 else 'are'} not (under 50 %): read those with care"
        sentences.append(
            f"{again}repeated on drawn parts of the texts (stability 75 % or more){care if shaky else ''}."
        )
    estimate = content["coverage"][0].get("expected")
    if content["calibrated"] and estimate is not None:
        sentences.append(
            f"About {percent(estimate)} of the texts are in the group where they belong, as far as their neighbours "
            "tell: an estimate without labels, off by some 10 points."
        )
    if content["trained"] is not None:
        sentences.append(content["trained"]["verdict"])
    if content["truth"] is not None:
        scores = content["truth"]["scores"]
        sentences.append(
            f"Against the labels given, which were not used: accuracy {percent(scores['accuracy'])}, "
            f"NMI {percent(scores['nmi'])}, ARI {percent(scores['ari'])}."
        )
    return sentences


def _are(count: int, what: str) -> str:
    return f"{count:,} {what} is" if count == 1 else f"{count:,} {what}s are"


def _trained(shown: Shown, with_texts: bool) -> dict[str, Any]:
    """Before and after side by side: maps of the same texts, what moved, and whether it helped."""
    assert shown.run.initial_labels is not None
    # Judged as it was fitted: what people changed afterwards is not what training did.
    before, after = shown.run.initial_labels[shown.rows], shown.run.model.labels_[shown.rows]
    # One verdict: that of the fit, where there is one.
    verdict = shown.run.model.training_verdict_
    if verdict is None:
        verdict = judge_training(shown.texts, shown.frozen, before, after, seed=shown.seed)
    examples = [_cut(text, LONGEST_TEXT) for text in shown.texts] if with_texts else None
    return {
        "kept": [asdict(each) for each in verdict.criteria],
        "verdict": verdict.sentence,
        "changes": compare_partitions(before, after, examples).to_dict(),
        "panels": [_panel(panel) for panel in shown.before_and_after],
        "names": shown.fitted_names,
    }


def _panel(panel: Panel) -> dict[str, str]:
    clusters, chosen = packed(panel.clusters, np.int32), packed(panel.chosen, np.int32)
    return {"title": panel.title, **packed_places(panel.places), "cluster": clusters, "points": chosen}


def _shortened(texts: Sequence[str]) -> list[str]:
    """Each cut where all together would be too long for a page."""
    longest = _longest(texts, TEXT_BUDGET)
    return [_cut(text, longest) for text in texts]


def _longest(texts: Sequence[str], budget: int) -> int:
    """Characters that a text may have so that all of them, as the page writes them, fit into so many bytes."""
    lengths = np.array([min(len(text), LONGEST_TEXT) for text in texts], dtype=np.int64)
    # A letter may take one byte or four, and one that means something to HTML six.
    written = sum(len(script_json(text[:LONGEST_TEXT]).encode()) for text in texts)
    if written <= budget:
        return LONGEST_TEXT
    allowed = int(lengths.sum() * budget / written)
    longest = LONGEST_TEXT
    while longest > SHORTEST_TEXT and np.minimum(lengths, longest).sum() > allowed:
        longest -= 10
    return longest


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def packed_places(places: NDArray[np.float32]) -> dict[str, str]:
    """Coordinates between -1 and 1, in 16 bits each."""
    scaled = np.clip(np.round(places * 32_000), -32_767, 32_767)
    return {"x": packed(scaled[:, 0], np.int16), "y": packed(scaled[:, 1], np.int16)}


def packed(values: NDArray[Any], kind: Any) -> str:
    """Base64 of the values as little-endian numbers of this kind."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<")).tobytes()).decode()
