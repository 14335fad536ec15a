"""NS and PS against the naive version of Eq. 18-19."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import aecl_oracle as oracle

from coterie import AECL, SCCL, TrainingConfig
from coterie.errors import InputError, SettingError
from coterie.metrics.external.attention import AttentionScores, attention_scores
from coterie.metrics.external.run_evaluation import attention_of_model


def random_attention(n: int, seed: int) -> np.ndarray:
    raw = np.exp(np.random.default_rng(seed).normal(size=(n, n)))
    return np.asarray(raw / raw.sum(axis=1, keepdims=True))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(0, 1000), st.integers(1, 4), st.booleans())
def test_against_the_oracle(n: int, seed: int, n_labels: int, weighted: bool) -> None:
    generator = np.random.default_rng(seed)
    matrix, labels = random_attention(n, seed), generator.integers(0, n_labels, n).tolist()
    weights = generator.integers(1, 5, n).tolist() if weighted else None
    scores = attention_scores(matrix, labels, weights)
    assert scores.negative == pytest.approx(oracle.negative_similarity(matrix, labels, weights), abs=1e-12)
    assert scores.positive == pytest.approx(oracle.positive_similarity(matrix, labels, weights), abs=1e-12)
    even = oracle.negative_similarity(np.full((n, n), 1 / n), labels, weights)
    assert scores.even == pytest.approx(even, abs=1e-12)


def test_by_hand() -> None:
    matrix = [[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.0, 0.4, 0.6]]
    scores = attention_scores(matrix, ["a", "a", "b"])
    assert scores == AttentionScores(
        pytest.approx((0.3 + 0.1 + 0.4) / 3), pytest.approx(1 - 0.8 / 3), pytest.approx(4 / 9)
    )
    assert scores.to_dict()["negative"] == scores.negative
    assert attention_scores(np.eye(3), ["a", "b", "c"]).negative == 0.0


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 2\) and labels has 3"):
        attention_scores(np.eye(2), ["a", "b", "c"])
    with pytest.raises(InputError, match="do not sum to 1"):
        attention_scores(np.ones((2, 2)), ["a", "b"])
    with pytest.raises(InputError, match="row 1"):
        attention_scores(np.eye(2), ["a", None])
    with pytest.raises(InputError, match="weights"):
        attention_scores(np.eye(2), ["a", "b"], [1, 0])


@pytest.fixture(scope="module")
def model(tiny_encoder: Path) -> AECL:
    texts, _ = topic_texts(40)
    training = TrainingConfig(max_epochs=3, max_steps=6, batch_size=16)
    settings = {"stage_1": 1, "stage_2": 1, "stage_3": 1, "augmentation": "word_deletion"}
    return AECL(3, encoder=str(tiny_encoder), training=training, **settings).fit(texts)


def test_over_a_corpus_in_batches(model: AECL) -> None:
    texts, labels = topic_texts(40)
    scores = attention_of_model(model, texts, labels)
    assert scores.negative + scores.positive == 1
    # By hand: three batches of at most 16, in the seed's order.
    batches = np.array_split(np.random.default_rng(0).permutation(40), 3)
    assert [len(batch) for batch in batches] == [14, 13, 13]
    negative = 0.0
    for batch in batches:
        matrix = model.attention_between([texts[i] for i in batch])
        negative += len(batch) * oracle.negative_similarity(matrix, [labels[i] for i in batch])
    assert scores.negative == pytest.approx(negative / 40, abs=1e-12)
    assert attention_of_model(model, texts, labels) == scores
    assert attention_of_model(model, texts, labels, seed=1) != scores
    assert attention_of_model(model, texts, ["same"] * 40) == AttentionScores(0.0, 1.0, 0.0)


def test_repeated_empty_and_unlabelled_texts(model: AECL) -> None:
    texts, labels = topic_texts(9)
    rows = [*texts, "", texts[0], texts[0], "not labelled", texts[1]]
    truth = [*labels, "parcel", labels[0], "refund", None, ""]
    scores = attention_of_model(model, rows, truth)
    order = np.random.default_rng(0).permutation(9)
    matrix = model.attention_between([texts[i] for i in order])
    weights = [3 if i == 0 else 1 for i in order]
    wanted = attention_scores(matrix, [labels[i] for i in order], weights)
    assert scores.to_dict() == pytest.approx(wanted.to_dict(), abs=1e-12)


def test_what_has_no_attention_is_refused(model: AECL) -> None:
    with pytest.raises(SettingError, match=r"AECL, and this is SCCL: fit with --method aecl"):
        attention_of_model(SCCL(2), ["a"], ["b"])
    with pytest.raises(InputError, match="2 rows and labels has 1"):
        attention_of_model(model, ["a", "b"], ["c"])
    with pytest.raises(InputError, match="none of the 2 texts has a label"):
        attention_of_model(model, ["a", " "], ["", "parcel"])
