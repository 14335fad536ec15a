"""Where new texts go, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.app.session import Explored
from coterie.clustering.kmeans import unit_rows
from coterie.describe.geometry import as_dense
from coterie.errors import InputError
from coterie.runs.edits.replay import Edited, apply_to_new

MOST_TEXTS, LONGEST_TEXT = 100, 20_000
# Words of a text that are tried, and texts like it that are shown.
MOST_WORDS, EXAMPLES = 40, 3


def place(explored: Explored, texts: Sequence[str]) -> list[dict[str, Any]]:
    """For every text its cluster and the runner-up, the texts of the run most like it, and the words that matter.

    A word matters as much as the probability of the cluster falls when the word is left out.
    """
    given = [text.strip()[:LONGEST_TEXT] for text in texts if text.strip()]
    if not given:
        raise InputError("there is no text to place")
    if len(given) > MOST_TEXTS:
        raise InputError(f"{MOST_TEXTS} texts at a time at most; for more there is coterie predict")
    with explored.model_lock:
        return _placed(explored, explored.state, given)


def _placed(explored: Explored, state: Edited, given: list[str]) -> list[dict[str, Any]]:
    model, edits = explored.model, state.applied
    answer = model.assign(given)
    table = model.predict_proba(given)
    calibration = explored.calibration
    sure = answer.confidence if calibration is None else calibration.confidence(answer.labels, answer.confidence)
    labels, placed = apply_to_new(edits, given, answer.labels, model.transform)
    second = _runner_ups(table, answer.labels)
    seconds, _ = apply_to_new([edit for edit in edits if edit.kind == "merge"], given, second, model.transform)
    examples = _examples(explored, given)
    return [
        {
            "text": text,
            "cluster": int(labels[i]),
            "name": state.names.get(int(labels[i]), "none"),
            "confidence": 1.0 if placed[i] else round(float(sure[i]), 3),
            "by_hand": bool(placed[i]),
            "runner_up": state.names.get(int(seconds[i])) if seconds[i] != labels[i] else None,
            "examples": examples[i],
            "words": _words(model, text, int(answer.labels[i]), float(table[i, answer.labels[i]])),
            "rest": " ".join(text.split()[MOST_WORDS:]),
        }
        for i, text in enumerate(given)
    ]


def _runner_ups(table: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    others = table.copy()
    others[np.arange(len(labels)), labels] = -1
    return others.argmax(axis=1) if table.shape[1] > 1 else np.full(len(labels), -1)


def _examples(explored: Explored, texts: Sequence[str]) -> list[list[dict[str, Any]]]:
    stored = explored.map
    alike = as_dense(unit_rows(explored.embed(list(texts))) @ explored.map_directions.T)
    nearest = np.argsort(-alike, axis=1)[:, :EXAMPLES]
    return [
        [
            {**explored.text(int(stored.rows[point])), "cosine": round(float(alike[i, point]), 3)}
            for point in points
            # A text that shares no word with any is like none.
            if alike[i, point] > 0
        ]
        for i, points in enumerate(nearest)
    ]


def _words(model: Any, text: str, label: int, probability: float) -> list[dict[str, Any]]:
    given = text.split()
    words, rest = given[:MOST_WORDS], given[MOST_WORDS:]
    if len(given) < 2:
        return []
    without = [" ".join([*words[:i], *words[i + 1 :], *rest]) for i in range(len(words))]
    fell = probability - model.predict_proba(without)[:, label]
    return [{"word": word, "matters": round(float(each), 4)} for word, each in zip(words, fell, strict=True)]
