"""Views by leaving words out."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import topic_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.errors import SettingError
from coterie.text.augmentation.word_deletion import WordDeletion


def _is_in_order(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(word in rest for word in part)


def test_the_generator_alone_decides() -> None:
    texts, _ = topic_texts(40)
    generator = np.random.default_rng(7)
    first = WordDeletion(0.3).augment(texts, generator)
    assert first == WordDeletion(0.3).augment(texts, np.random.default_rng(7))
    assert first != WordDeletion(0.3).augment(texts, generator)
    assert first != WordDeletion(0.3).augment(texts, np.random.default_rng(8))


def test_the_texts_given_stay_as_they_are() -> None:
    texts, _ = topic_texts(10)
    before = list(texts)
    WordDeletion(0.9).augment(texts, np.random.default_rng(0))
    assert texts == before


@settings(max_examples=80, deadline=None)
@given(
    texts=st.lists(st.text(alphabet="ab ?\t", min_size=1).filter(lambda text: text.strip() != ""), max_size=8),
    ratio=st.floats(0.01, 0.99),
    seed=st.integers(0, 1000),
)
def test_words_keep_their_order_and_one_always_stays(texts: list[str], ratio: float, seed: int) -> None:
    views = WordDeletion(ratio).augment(texts, np.random.default_rng(seed))
    assert len(views) == len(texts)
    for text, view in zip(texts, views, strict=True):
        assert view.split()
        assert _is_in_order(view.split(), text.split())


@pytest.mark.parametrize("ratio", [0.1, 0.2, 0.5])
def test_the_share_of_words_left_out_is_the_ratio(ratio: float) -> None:
    texts = [" ".join(str(i) for i in range(50))] * 400
    views = WordDeletion(ratio).augment(texts, np.random.default_rng(0))
    left_out = 1 - sum(len(view.split()) for view in views) / (50 * 400)
    assert left_out == pytest.approx(ratio, abs=0.015)  # four standard deviations at a half
    # Every place is left out now and then: no word is safe, none is doomed.
    seen = np.array([[str(i) in view.split() for i in range(50)] for view in views]).mean(axis=0)
    assert np.abs(seen - (1 - ratio)).max() < 0.12


def test_words_are_drawn_one_by_one_and_not_by_a_fixed_number() -> None:
    views = WordDeletion(0.2).augment(["a b c d e f g h i j"] * 200, np.random.default_rng(0))
    assert len({len(view.split()) for view in views}) > 3


def test_the_word_that_stays_is_not_always_the_same() -> None:
    views = WordDeletion(0.99).augment(["one two three"] * 60, np.random.default_rng(0))
    assert {view for view in views if " " not in view} == {"one", "two", "three"}


def test_a_text_of_one_word_stays_as_it_is() -> None:
    assert WordDeletion(0.99).augment(["word", " padded "] * 20, np.random.default_rng(0)) == ["word", " padded "] * 20


def test_a_text_that_loses_nothing_keeps_its_white_space() -> None:
    views = WordDeletion(0.001).augment(["two  spaces"], np.random.default_rng(0))
    assert views == ["two  spaces"]


def test_a_text_without_words_stays_as_it_is() -> None:
    assert WordDeletion(0.5).augment(["", "  "], np.random.default_rng(0)) == ["", "  "]


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_ratio_that_is_no_share_is_named(ratio: float) -> None:
    with pytest.raises(SettingError, match="ratio="):
        WordDeletion(ratio).augment(["a b"], np.random.default_rng(0))
