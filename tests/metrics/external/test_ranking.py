"""MAP and MRR, against cases worked out by hand and against the definition written out."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.errors import InputError
from coterie.metrics.external.ranking import evaluate_ranking, relevant_ranks


@pytest.mark.parametrize(
    ("similarities", "relevant", "precision", "reciprocal"),
    [
        # Ranked r, -, r, -: precisions 1/1 and 2/3.
        ([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0], (1 + 2 / 3) / 2, 1),
        # Ranked -, -, r, r: 1/3 and 2/4.
        ([0.1, 0.9, 0.2, 0.8], [1, 0, 1, 0], (1 / 3 + 2 / 4) / 2, 1 / 3),
        # Negative similarities are ranked like all others: -, r.
        ([-0.9, -0.1], [1, 0], 1 / 2, 1 / 2),
        ([0.3, 0.2, 0.1], [1, 1, 1], 1, 1),
        # A space in which everything is alike earns the worst rank there is.
        ([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0], 1 / 4, 1 / 4),
        # r, then a tie of r and -: 1/1 and 2/3.
        ([0.5, 0.5, 0.9], [1, 0, 1], (1 + 2 / 3) / 2, 1),
    ],
)
def test_one_question(similarities: list[float], relevant: list[int], precision: float, reciprocal: float) -> None:
    scores = evaluate_ranking([(similarities, relevant)])
    assert (scores.map, scores.mrr, scores.n_questions) == (pytest.approx(precision), pytest.approx(reciprocal), 1)


def test_questions_count_equally_and_those_without_an_answer_are_left_out() -> None:
    first, second = ([0.9, 0.1], [1, 0]), ([0.9, 0.5, 0.4, 0.1], [0, 0, 0, 1])
    scores = evaluate_ranking([first, second, ([0.9, 0.1], [0, 0])])
    assert (scores.map, scores.mrr, scores.n_questions) == (pytest.approx(0.625), pytest.approx(0.625), 2)
    with pytest.raises(InputError, match="no question has a relevant candidate"):
        evaluate_ranking([([0.9, 0.1], [0, 0])])


def test_against_the_definition() -> None:
    generator = np.random.default_rng(0)
    questions = [(generator.normal(size=10), generator.random(10) < 0.4) for _ in range(50)]
    precisions, reciprocals = [], []
    for similarities, relevant in questions:
        ranked = [wanted for _, wanted in sorted(zip(similarities, relevant, strict=True), key=lambda each: -each[0])]
        hits = [place for place, wanted in enumerate(ranked) if wanted]
        if hits:
            precisions.append(sum(sum(ranked[: place + 1]) / (place + 1) for place in hits) / len(hits))
            reciprocals.append(1 / (hits[0] + 1))
    scores = evaluate_ranking(questions)
    assert scores.n_questions == len(precisions) < 51
    assert scores.map == pytest.approx(np.mean(precisions)) and scores.mrr == pytest.approx(np.mean(reciprocals))


def test_what_cannot_be_ranked() -> None:
    with pytest.raises(InputError, match="2 candidates are marked relevant or not, and 3 have a similarity"):
        relevant_ranks([0.1, 0.2, 0.3], [1, 0])
    with pytest.raises(InputError, match="NaN"):
        relevant_ranks([0.1, float("nan")], [1, 0])
