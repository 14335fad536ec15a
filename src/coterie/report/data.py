"""All that a report shows, computed once from a run folder; whoever displays it computes nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.report.cards import ClusterCard, build_cards, runner_ups
from coterie.report.changes import compare_partitions
from coterie.report.content import describe_clusters
from coterie.report.helped import neighbours_kept, verdict
from coterie.report.projection import Kind, project, project_together
from coterie.report.run import Run
from coterie.report.stability import cluster_stability
from coterie.report.truth import coverage, truth_table

# Texts on the map unless told otherwise; of more, as many are drawn.
MOST_POINTS = 20_000
# Texts of maps side by side, and how many such maps.
SHARED_TEXTS, MOST_PANELS = 1_500, 6
# Characters of all texts together, and of one.
TEXT_BUDGET, LONGEST_TEXT, SHORTEST_TEXT = 5_000_000, 400, 40
# Points of a curve.
CURVE_POINTS = 200


@dataclass(frozen=True)
class ReportData:
    """What a report shows.

    Attributes
    ----------
    content:
        Ready for JSON; tables of numbers are base64 of little-endian arrays.
    cards:
        The clusters, by id.
    """

    content: dict[str, Any]
    cards: tuple[ClusterCard, ...]


def build_report(
    run: Run,
    *,
    labels: Sequence[object] | None = None,
    kind: Kind = "auto",
    points: int = MOST_POINTS,
    with_texts: bool = True,
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
    """
    corpus, model = run.corpus, run.model
    shown = _shown_rows(run, points)
    texts = [corpus.texts[row] for row in shown]
    vectors = _dense(model.transform(texts), model.seed_)
    centers = _means(vectors, model.labels_[shown], len(model.cluster_centers_))
    clusters, confidence = model.labels_[shown], model.confidence_[shown]
    summaries = describe_clusters(
        corpus.texts,
        model.labels_,
        confidence=model.confidence_,
        center_distance=model.center_distance_,
        topics=model.cluster_topics(),
    )
    stability = cluster_stability(vectors, clusters, len(centers), seed=model.seed_)
    second = runner_ups(vectors, centers, clusters)
    cards = build_cards(
        summaries,
        texts,
        clusters,
        vectors=vectors,
        confidence=confidence,
        runner_up=second,
        stability=stability,
    )
    repeated = _repeated(run, len(cards))
    cards = [replace(card, duplicates=share) for card, share in zip(cards, repeated, strict=True)]
    frozen = _frozen_vectors(run, texts)
    content: dict[str, Any] = {
        "about": _about(run, with_texts),
        "clusters": [_card(card, with_texts) for card in cards],
        "points": {
            "count": len(shown),
            **_places(project(vectors, kind=kind, seed=model.seed_)),
            "cluster": packed(clusters, np.int32),
            "runner_up": packed(second, np.int32),
            "confidence": packed(np.round(255 * np.clip(confidence, 0, 1)), np.uint8),
            "texts": _shortened(texts) if with_texts else None,
        },
        "coverage": coverage(model.confidence_, model.labels_, labels),
        "curves": _curves(run.about["history"]),
        "trained": None,
        "stages": [],
        "truth": None if labels is None else truth_table(labels, model.labels_),
    }
    before = run.initial_labels
    if before is not None:
        content["trained"] = _trained(run, shown, texts, vectors, frozen, with_texts)
        content["stages"] = _stages(run, shown)
    content["headline"] = _headline(content, cards)
    return ReportData(content, tuple(cards))


def _shown_rows(run: Run, most: int) -> NDArray[np.int64]:
    """The first row of every distinct text that is in a cluster, or of as many as are shown."""
    first = np.unique(run.corpus.distinct_index, return_index=True)[1]
    rows = np.sort(first[run.model.labels_[first] >= 0])
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(run.model.seed_).permutation(rows)[:most])
    return rows


def _repeated(run: Run, n_clusters: int) -> list[float]:
    """Which share of each cluster's rows repeats the text of an earlier row; a text is in one cluster alone."""
    labels, index = run.model.labels_, run.corpus.distinct_index
    inside = labels >= 0
    rows = np.bincount(labels[inside], minlength=n_clusters)
    first = np.unique(index[inside], return_index=True)[1]
    distinct = np.bincount(labels[inside][first], minlength=n_clusters)
    return [float(share) for share in 1 - distinct / np.maximum(rows, 1)]


def _about(run: Run, with_texts: bool) -> dict[str, Any]:
    about, labels = run.about, run.model.labels_
    return {
        "title": Path(about["input"]["source"]).name,
        "method": about["method"],
        "encoder": about["settings"].get("encoder"),
        "seed": about["seed"],
        "rows": len(labels),
        "distinct": len(run.corpus.distinct),
        "unassigned": int((labels < 0).sum()),
        "clusters": len(np.unique(labels[labels >= 0])),
        "notes": about["notes"],
        "version": about["versions"]["coterie"],
        "with_texts": with_texts,
    }


def _card(card: ClusterCard, with_texts: bool) -> dict[str, Any]:
    told = card.to_dict()
    if not with_texts:
        told |= {"representatives": [], "borderline": []}
    return told


def _headline(content: Mapping[str, Any], cards: Sequence[ClusterCard]) -> list[str]:
    """What a reader should know first, in sentences."""
    about = content["about"]
    largest = max(cards, key=lambda card: card.summary.size)
    sizes = [card.summary.size for card in cards]
    sentences = [
        f"{about['rows']:,} texts in {about['clusters']:,} groups; the largest is “{largest.name}” "
        f"({largest.summary.size:,}, {largest.summary.share:.0%}), the smallest has {min(sizes):,}."
    ]
    if about["unassigned"]:
        sentences.append(f"{about['unassigned']:,} rows are in no group.")
    known = [card.stability for card in cards if card.stability is not None]
    if known:
        stable, shaky = sum(each >= 0.75 for each in known), sum(each < 0.5 for each in known)
        sentences.append(
            f"{stable} of {len(known)} groups are found again when the clustering is repeated on drawn parts of the "
            f"texts (stability 75 % or more); {shaky} are not (under 50 %): read those with care."
        )
    if content["trained"] is not None:
        sentences.append(content["trained"]["verdict"])
    if content["truth"] is not None:
        scores = content["truth"]["scores"]
        sentences.append(
            f"Against the labels given, which were not used: accuracy {scores['accuracy']:.0%}, "
            f"NMI {scores['nmi']:.0%}, ARI {scores['ari']:.0%}."
        )
    return sentences


def _trained(
    run: Run,
    shown: NDArray[np.int64],
    texts: Sequence[str],
    vectors: NDArray[np.float32],
    frozen: NDArray[np.float32] | None,
    with_texts: bool,
) -> dict[str, Any]:
    """Before and after side by side: maps of the same texts, what moved, and whether it helped."""
    assert run.initial_labels is not None
    before, after = run.initial_labels[shown], run.model.labels_[shown]
    kept = neighbours_kept(texts, frozen, before, after, seed=run.model.seed_)
    changes = compare_partitions(before, after, texts if with_texts else None)
    panels = []
    if frozen is not None:
        chosen = _drawn(np.flatnonzero(before >= 0), run.model.seed_)
        maps = project_together([frozen[chosen], vectors[chosen]], seed=run.model.seed_)
        for title, places, labels in (("before", maps[0], before), ("after", maps[1], after)):
            panels.append({"title": title, **_places(places), "cluster": packed(labels[chosen], np.int32)})
        panels[0]["points"] = panels[1]["points"] = packed(chosen, np.int32)
    return {
        "kept": [each.to_dict() for each in kept],
        "verdict": verdict(kept),
        "changes": changes.to_dict(),
        "panels": panels,
    }


def _stages(run: Run, shown: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Maps of the same texts at stored moments of the training."""
    assert run.initial_labels is not None
    chosen = _drawn(np.flatnonzero(run.initial_labels[shown] >= 0), run.model.seed_)
    found = run.snapshots(shown[chosen])
    if len(found) < 2:
        return []
    picked = np.unique(np.linspace(0, len(found) - 1, min(MOST_PANELS, len(found))).round().astype(int))
    maps = project_together([found[place][1] for place in picked], seed=run.model.seed_)
    clusters = packed(run.model.labels_[shown][chosen], np.int32)
    points = packed(chosen, np.int32)
    return [
        {"title": found[place][0], **_places(each), "cluster": clusters, "points": points}
        for place, each in zip(picked, maps, strict=True)
    ]


def _frozen_vectors(run: Run, texts: Sequence[str]) -> NDArray[np.float32] | None:
    """What the encoder said of the texts before training; ``None`` where it was not trained, or cannot be loaded."""
    from coterie.errors import CoterieError
    from coterie.methods.encoding import EncoderMethod

    model = run.model
    if run.initial_labels is None or not isinstance(model, EncoderMethod):
        return None
    try:
        return np.asarray(model._load_encoder().encode(list(texts)), dtype=np.float32)
    except (CoterieError, OSError):
        return None


def _curves(history: Mapping[str, Any]) -> dict[str, Any] | None:
    """Every loss term over the steps, in means of some steps each, and where the stages begin."""
    steps: list[dict[str, Any]] = history["steps"]
    if not steps:
        return None
    known = ("stage", "epoch", "step")
    names = list(dict.fromkeys(name for step in steps for name in step if name not in known))
    width = -(-len(steps) // CURVE_POINTS)
    terms: dict[str, list[list[float]]] = {}
    for name in names:
        there = [(step["step"], step[name]) for step in steps if name in step]
        parts = [there[begin : begin + width] for begin in range(0, len(there), width)]
        terms[name] = [[_mean([x for x, _ in part]), _mean([y for _, y in part])] for part in parts]
    stages = [(stage, next(of_stage)["step"]) for stage, of_stage in groupby(steps, key=lambda step: step["stage"])]
    return {"terms": terms, "stages": [{"name": name, "step": step} for name, step in stages]}


def _dense(vectors: Any, seed: int) -> NDArray[np.float32]:
    """Word counts are reduced: a map of thousands of dimensions is none."""
    from scipy import sparse

    if not sparse.issparse(vectors):
        return np.asarray(vectors, dtype=np.float32)
    from sklearn.decomposition import TruncatedSVD

    width = max(1, min(100, min(vectors.shape) - 1))
    return np.asarray(TruncatedSVD(width, random_state=seed).fit_transform(vectors), dtype=np.float32)


def _means(vectors: NDArray[np.float32], labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.float32]:
    """The mean vector of every cluster, zeros for one without any."""
    sums = np.zeros((n_clusters, vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, labels, vectors)
    counts = np.bincount(labels, minlength=n_clusters)[:, None]
    return np.asarray(sums / np.maximum(counts, 1), dtype=np.float32)


def _drawn(places: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(seed).permutation(places)[:SHARED_TEXTS])


def _shortened(texts: Sequence[str]) -> list[str]:
    """Each cut where all together would be too long for a page."""
    longest = min(LONGEST_TEXT, max(SHORTEST_TEXT, TEXT_BUDGET // max(1, len(texts))))
    return [text if len(text) <= longest else text[: longest - 1] + "…" for text in texts]


def _places(places: NDArray[np.float32]) -> dict[str, str]:
    """Coordinates between -1 and 1, in 16 bits each."""
    scaled = np.clip(np.round(places * 32_000), -32_767, 32_767)
    return {"x": packed(scaled[:, 0], np.int16), "y": packed(scaled[:, 1], np.int16)}


def packed(values: NDArray[Any], kind: Any) -> str:
    """Base64 of the values as little-endian numbers of this kind."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<")).tobytes()).decode()


def _mean(values: Sequence[float]) -> float:
    return float(f"{sum(values) / len(values):.6g}")
