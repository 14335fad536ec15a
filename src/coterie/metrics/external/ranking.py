"""MAP and MRR: how well candidates are ranked by their similarity to a question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.errors import InputError


@dataclass(frozen=True)
class RankingScores:
    """From 0 to 1, over the questions that have a relevant candidate.

    Attributes
    ----------
    map:
        Mean average precision: for each relevant candidate the share of relevant ones down to it; their mean, and the
        mean of that over the questions.
    mrr:
        Mean reciprocal rank: one over the rank of the first relevant candidate, as a mean over the questions.
    n_questions:
        How many were counted.
    """

    map: float
    mrr: float
    n_questions: int


def evaluate_ranking(questions: Iterable[tuple[ArrayLike, ArrayLike]]) -> RankingScores:
    """Score the ranking of the candidates of each question.

    ``questions`` yield, per question, the similarities of its candidates and which of them are relevant. Of equally
    similar candidates the relevant ones are ranked last, so that ties gain nothing. A question without a relevant
    candidate is left out.
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
    near, wanted = np.asarray(similarities, dtype=np.float64), np.asarray(relevant, dtype=bool)
    if near.ndim != 1 or near.shape != wanted.shape:
        raise InputError(f"{wanted.size} candidates are marked relevant or not, and {near.size} have a similarity")
    if not np.isfinite(near).all():
        raise InputError("a similarity is NaN or infinite: such candidates have no rank")
    order = np.lexsort((wanted, -near))
    return np.flatnonzero(wanted[order]) + 1
