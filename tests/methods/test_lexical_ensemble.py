"""The ensemble of lexical views: its members and cosines, what further training uses, what is saved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import TOPICS as WORDS
from conftest import topic_texts
from numpy.typing import NDArray

from coterie.methods.lexical import ensemble
from coterie.methods.lexical.ensemble import SHARE_OF_STEPS, VIEWS, LexicalEnsemble
from coterie.methods.lexical.network import LexicalConfig
from coterie.methods.lexical.view import LexicalView, PseudoLabels

pytestmark = pytest.mark.usefixtures("quick_lexical_views")

TEXTS, TOPICS = topic_texts(60)
CODES = np.array([sorted(set(TOPICS)).index(topic) for topic in TOPICS])
ONCE = np.ones(len(TEXTS), dtype=np.int64)
# Two groups across the topics, by whether most of a text's words are among the first four of its topic.
FIRST_WORDS = {word for words in WORDS.values() for word in words[:4]}
HALVES = np.array([int(len(FIRST_WORDS & set(text.split())) > 1) for text in TEXTS])
UNKNOWN = "xyzzy"


def _neighbours(groups: NDArray[np.int64], count: int = 5) -> NDArray[np.int64]:
    """Return for each text the next texts of its group."""
    members = [np.flatnonzero(groups == group) for group in groups]
    return np.stack(
        [np.roll(rows, -int(np.searchsorted(rows, i)) - 1)[:count] for i, rows in enumerate(members)]
    ).astype(np.int64)


def _labels(groups: NDArray[np.int64], trust: float = 1.0) -> PseudoLabels:
    targets = np.eye(groups.max() + 1, dtype=np.float32)[groups]
    return PseudoLabels(targets, np.full(len(groups), trust, dtype=np.float32))


def _separation(vectors: NDArray[np.float32], groups: NDArray[np.int64]) -> float:
    """Return how much larger cosines within the groups are than between them."""
    cosines = vectors @ vectors.T
    same = np.equal.outer(groups, groups)
    return float(cosines[same & ~np.eye(len(groups), dtype=bool)].mean() - cosines[~same].mean())


def _train_on(
    first: LexicalEnsemble, groups: NDArray[np.int64], labels: PseudoLabels, seed: int = 5
) -> NDArray[np.float32]:
    """Return the vectors after training on with neighbours of the same group."""
    return first.train_on(TEXTS, ONCE, _neighbours(groups), labels, seed=seed).encode(TEXTS)


@pytest.fixture(scope="module")
def fitted(quick_lexical_views: Iterator[None]) -> LexicalEnsemble:
    """Return an ensemble whose neighbours are of the same topic; tests only read it."""
    return LexicalEnsemble.fit(TEXTS, ONCE, _neighbours(CODES), seed=3)


def test_the_members_have_the_same_words_and_other_weights(fitted: LexicalEnsemble) -> None:
    first, second = fitted.views
    assert len(fitted.views) == VIEWS == 2
    assert first.words.vocabulary == second.words.vocabulary
    assert not np.allclose(first.encode(TEXTS), second.encode(TEXTS), atol=0.1)
    # Each is the view of a seed of its own, which no other seed of a fit uses.
    for number, view in enumerate(fitted.views):
        alone = LexicalView.fit(TEXTS, ONCE, semantic_neighbours=_neighbours(CODES), seed=VIEWS * 3 + number)
        np.testing.assert_array_equal(view.encode(TEXTS), alone.encode(TEXTS))


def test_cosines_are_the_means_of_the_members(fitted: LexicalEnsemble) -> None:
    vectors = fitted.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), sum(view.dimension for view in fitted.views))
    of_members = [(rows := view.encode(TEXTS)) @ rows.T for view in fitted.views]
    np.testing.assert_allclose(vectors @ vectors.T, np.mean(of_members, axis=0), atol=1e-5)


def test_a_text_without_a_known_word_is_zero(fitted: LexicalEnsemble) -> None:
    vectors = fitted.encode([TEXTS[0], UNKNOWN, "", TEXTS[1]])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1], atol=1e-6)
    together, alone = fitted.encode(TEXTS, at_a_time=1), [fitted.encode([text], at_a_time=1)[0] for text in TEXTS]
    np.testing.assert_array_equal(together, alone)


def test_no_texts_have_no_vectors(fitted: LexicalEnsemble) -> None:
    assert fitted.encode([]).shape == (0, fitted.encode(TEXTS[:1]).shape[1])


def test_training_on_changes_the_vectors_and_leaves_the_first_ensemble(fitted: LexicalEnsemble) -> None:
    before = fitted.encode(TEXTS)
    further = fitted.train_on(TEXTS, ONCE, _neighbours(CODES), _labels(CODES))
    np.testing.assert_array_equal(fitted.encode(TEXTS), before)
    assert not np.allclose(further.encode(TEXTS), before, atol=1e-2)
    for old, new in zip(fitted.views, further.views, strict=True):
        assert new.words is old.words and new.network is not old.network
    assert _separation(further.encode(TEXTS), CODES) > _separation(before, CODES)


@pytest.fixture
def more_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train on for 240 steps, after which the pseudo-labels are learned."""
    monkeypatch.setattr(ensemble, "SHARE_OF_STEPS", 4)


@pytest.mark.usefixtures("more_steps")
def test_training_on_uses_the_pseudo_labels(fitted: LexicalEnsemble) -> None:
    topics, halves = (_train_on(fitted, CODES, _labels(groups)) for groups in (CODES, HALVES))
    assert _separation(halves, HALVES) > _separation(topics, HALVES) + 0.04
    # A text that is not trusted counts next to nothing: here those with the pseudo-label of the other half.
    trusted = np.arange(len(TEXTS)) % 2 == 0
    targets = _labels(np.where(trusted, HALVES, 1 - HALVES)).targets
    believed, doubted = (
        _train_on(fitted, CODES, PseudoLabels(targets, trust.astype(np.float32)))
        for trust in (np.ones(len(TEXTS)), trusted)
    )
    assert _separation(doubted, HALVES) > _separation(believed, HALVES) + 0.02


@pytest.mark.usefixtures("more_steps")
def test_training_on_uses_the_neighbours(fitted: LexicalEnsemble) -> None:
    topics, halves = (_train_on(fitted, groups, _labels(CODES)) for groups in (CODES, HALVES))
    assert _separation(halves, HALVES) > _separation(topics, HALVES) + 0.02
    assert _separation(topics, CODES) > _separation(halves, CODES) + 0.02


def test_training_on_takes_a_third_of_the_steps(fitted: LexicalEnsemble, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def record(*given: Any, **named: Any) -> LexicalView:
        calls.append(named)
        return fitted.views[0]

    monkeypatch.setattr(ensemble, "LexicalConfig", LexicalConfig)
    monkeypatch.setattr(LexicalView, "fit", record)
    labels = _labels(CODES)
    fitted.train_on(TEXTS, ONCE, _neighbours(CODES), labels, seed=7)
    assert [call["seed"] for call in calls] == [14, 15]
    for call, view in zip(calls, fitted.views, strict=True):
        assert call["begin_with"] is view and call["pseudo_labels"] is labels
        config, usual = call["config"], LexicalConfig()
        for name in ("min_steps", "max_steps", "epochs"):
            assert getattr(config, name) == int(getattr(usual, name) * SHARE_OF_STEPS) > 0, name
        assert (config.hidden, config.dimension) == (usual.hidden, usual.dimension)


def test_the_seed_decides(fitted: LexicalEnsemble) -> None:
    again = LexicalEnsemble.fit(TEXTS, ONCE, _neighbours(CODES), seed=3)
    np.testing.assert_array_equal(again.encode(TEXTS), fitted.encode(TEXTS))
    first, second, other = (_train_on(fitted, CODES, _labels(CODES), seed) for seed in (5, 5, 9))
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other, atol=1e-3)


def test_repeated_texts_and_texts_without_a_known_word_can_be_trained_on() -> None:
    texts = [*TEXTS[:20], UNKNOWN, "?!"]
    counts = np.array([7, *[1] * 19, 3, 2])
    first = LexicalEnsemble.fit(TEXTS, ONCE, _neighbours(CODES))
    neighbours = np.tile(np.array([20, 21, 0]), (len(texts), 1))
    further = first.train_on(texts, counts, neighbours, _labels(np.arange(len(texts)) % 3, trust=0.0))
    vectors = further.encode(texts)
    assert np.isfinite(vectors).all() and not vectors[20:].any()


def test_a_restored_ensemble_has_the_same_vectors(fitted: LexicalEnsemble) -> None:
    # More than ten members: their numbers are not in alphabetical order.
    many = LexicalEnsemble([*fitted.views] * 6)
    for each in (fitted, many):
        state = each.state()
        assert all(isinstance(array, np.ndarray) for array in state.values())
        again = LexicalEnsemble.restore(dict(sorted(state.items())))
        assert len(again.views) == len(each.views)
        texts = [*TEXTS, UNKNOWN, ""]
        np.testing.assert_array_equal(again.encode(texts), each.encode(texts))
        assert set(again.state()) == set(state)
