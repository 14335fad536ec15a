"""Assign new texts to the clusters of a run, and show why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.app.session import ExplorerSession
from coterie.clustering.kmeans import unit_rows
from coterie.describe.geometry import as_dense
from coterie.errors import InputError
from coterie.runs.edits.replay import EditedClusters, apply_to_new

# Texts per request; more are a job for ``coterie predict``.
MAX_TEXTS = 100
# Characters of a text that are read; encoders cut texts earlier than this.
MAX_CHARACTERS = 20_000
# Words of a text that are left out one at a time, each of which is one more text to embed.
MAX_WORDS = 40
# Similar texts of the run that are shown per text.
N_EXAMPLES = 3


def assign_texts(session: ExplorerSession, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return for every text its cluster and runner-up, the most similar texts of the run, and the words that matter.

    The importance of a word is how much the probability of the cluster falls when the word is left out.
    """
    given = [text.strip()[:MAX_CHARACTERS] for text in texts if text.strip()]
    if not given:
        raise InputError("there is no text to assign: write at least one")
    if len(given) > MAX_TEXTS:
        raise InputError(f"at most {MAX_TEXTS} texts at a time; use coterie predict for more")
    with session.model_lock:
        return _assign(session, session.state, given)


def _assign(session: ExplorerSession, state: EditedClusters, texts: list[str]) -> list[dict[str, Any]]:
    from coterie.runs.prediction import assign_with_edits  # imports torch: only when a text is assigned

    model, edits = session.model, state.applied
    found = assign_with_edits(model, session.calibration, edits, texts)
    labels, fitted = found.labels, found.fitted_labels
    probabilities = model.predict_proba(texts)
    second = _second_best(probabilities, fitted)
    merges = [edit for edit in edits if edit.kind == "merge"]
    runner_ups, _ = apply_to_new(merges, texts, second, model.transform)
    examples = _similar_texts(session, texts)
    return [
        {
            "text": text,
            "cluster": int(labels[i]),
            "name": state.names.get(int(labels[i]), "no cluster"),
            "confidence": round(float(found.confidence[i]), 3),
            "by_hand": bool(found.moved[i]),
            "runner_up": state.names.get(int(runner_ups[i])) if runner_ups[i] != labels[i] else None,
            "examples": examples[i],
            "words": _word_importance(model, text, int(fitted[i]), float(probabilities[i, fitted[i]])),
            "rest": " ".join(text.split()[MAX_WORDS:]),
        }
        for i, text in enumerate(texts)
    ]


def _second_best(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    others = probabilities.copy()
    others[np.arange(len(labels)), labels] = -1
    return others.argmax(axis=1) if probabilities.shape[1] > 1 else np.full(len(labels), -1)


def _similar_texts(session: ExplorerSession, texts: Sequence[str]) -> list[list[dict[str, Any]]]:
    rows = session.map.rows
    cosines = as_dense(unit_rows(session.embed(list(texts))) @ session.map_directions.T)
    nearest = np.argsort(-cosines, axis=1)[:, :N_EXAMPLES]
    return [
        [
            {**session.text(int(rows[point])), "cosine": round(float(cosines[i, point]), 3)}
            for point in points
            # With counted words, a text that shares no word with another is similar to none.
            if cosines[i, point] > 0
        ]
        for i, points in enumerate(nearest)
    ]


def _word_importance(model: Any, text: str, label: int, probability: float) -> list[dict[str, Any]]:
    all_words = text.split()
    words, rest = all_words[:MAX_WORDS], all_words[MAX_WORDS:]
    if len(all_words) < 2:
        return []
    without = [" ".join([*words[:i], *words[i + 1 :], *rest]) for i in range(len(words))]
    importance = probability - model.predict_proba(without)[:, label]
    return [{"word": word, "importance": round(float(each), 4)} for word, each in zip(words, importance, strict=True)]
