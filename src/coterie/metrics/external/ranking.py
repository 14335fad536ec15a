"""Score the ranking of candidates by their similarity to a question: MAP and MRR."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.errors import InputError


@dataclass(frozen=True)
class RankingScores:
    """Scores from 0 to 1, over the questions that have a relevant candidate.

    Attributes
    ----------
    map:
        Mean average precision. Average precision is the mean, over the relevant candidates, of the share of relevant
        candidates up to this rank.
    mrr:
        Mean reciprocal rank: the mean over the questions of one over the rank of the first relevant candidate.
    n_questions:
        Number of questions with a relevant candidate.
    """

    map: float
    mrr: float
    n_questions: int


def evaluate_ranking(questions: Iterable[tuple[ArrayLike, ArrayLike]]) -> RankingScores:
    """Score the ranking of the candidates of each question.

    ``questions`` has, for each question, the similarities of its candidates and whether each of them is relevant. Among
    equally similar candidates the relevant ones are ranked last, so that ties do not raise the score. A question
    without a relevant candidate is left out.
    """
    precisions, reciprocals = [], []
    for similarities, relevant in questions:
        ranks = relevant_ranks(similarities, relevant)
        if len(ranks):
            precisions.append(float(np.mean(np.arange(1, len(ranks) + 1) / ranks)))
            reciprocals.append(float(1 / ranks[0]))
    if not precisions:
        raise InputError("no question has a relevant candidate: there is nothing to score")
    return RankingScores(float(np.mean(precisions)), float(np.mean(reciprocals)), len(precisions))


def relevant_ranks(similarities: ArrayLike, relevant: ArrayLike) -> NDArray[np.int64]:
    """Return the ranks of the relevant candidates, from 1, in ascending order."""
    near, is_relevant = np.asarray(similarities, dtype=np.float64), np.asarray(relevant, dtype=bool)
    if near.ndim != 1 or near.shape != is_relevant.shape:
        raise InputError(f"{is_relevant.size} candidates are marked relevant or not, and {near.size} have a similarity")
    if not np.isfinite(near).all():
        raise InputError("a similarity is NaN or infinite: such candidates have no rank")
    order = np.lexsort((is_relevant, -near))
    return np.flatnonzero(is_relevant[order]) + 1
