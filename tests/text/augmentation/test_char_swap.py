"""Misspellings."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.text.augmentation.char_swap import CharSwap, graphemes


def made(text: str, n: int = 60, ratio: float = 0.1, operations: tuple[str, ...] | None = None) -> set[str]:
    augmenter = CharSwap(ratio) if operations is None else CharSwap(ratio, operations)
    return set(augmenter.augment([text] * n, np.random.default_rng(0)))


def test_each_operation() -> None:
    assert made("abc", operations=("delete",)) == {"bc", "ac", "ab"}
    assert made("abc", operations=("swap",)) == {"bac", "acb"}
    substituted = made("abc", 200, operations=("substitute",))
    assert all(len(word) == 3 and sum(a != b for a, b in zip(word, "abc", strict=True)) == 1 for word in substituted)
    assert len(substituted) > 40
    inserted = made("abc", 200, operations=("insert",))
    assert all(len(word) == 4 for word in inserted)
    assert {"a", "b", "c"} < {letter for word in inserted for letter in word} <= set("abcdefghijklmnopqrstuvwxyz")


def test_the_share_of_words_that_change() -> None:
    text = " ".join(["parcel"] * 20)
    for ratio, changed in ((0.1, 2), (0.2, 4), (0.3, 6)):
        for view in made(text, ratio=ratio):
            assert sum(word != "parcel" for word in view.split()) == changed


def test_a_word_of_one_letter_is_not_lost() -> None:
    assert all(len(view) == 2 and "a" in view for view in made("a"))
    assert made("a", operations=("delete", "swap", "substitute")) == {"a"}
    assert all(view.replace("1", "") for view in made("a1", operations=("delete", "substitute")))


def test_digits_and_punctuation_stay() -> None:
    assert made("2024 !? 15:30") == {"2024 !? 15:30"}
    for view in made("v5.2-beta!", 200):
        assert [c for c in view if not c.isalpha()] == list("5.2-!")


def test_new_letters_have_the_case_of_their_neighbour() -> None:
    assert all(view.isupper() for view in made("HELP", 200, operations=("substitute", "insert")))
    assert all(view.islower() for view in made("help", 200, operations=("substitute", "insert")))


@pytest.mark.parametrize(
    ("text", "script"),
    [("где моя посылка", "CYRILLIC"), ("πού είναι", "GREEK"), ("我的包裹在哪里", "CJK"), ("أين طردي", "ARABIC")],
)
def test_new_letters_are_of_the_same_script_and_text(text: str, script: str) -> None:
    views = made(text, 100)
    assert text not in views
    letters = {letter for view in views for letter in view if letter.isalpha()}
    assert {unicodedata.name(letter).split()[0] for letter in letters} == {script}
    assert {letter.lower() for letter in letters} <= {letter.lower() for letter in text}


def test_a_text_of_one_letter_of_another_script_has_no_letters_to_offer() -> None:
    assert made("гг", operations=("substitute", "insert")) == {"гг"}


def test_two_equal_neighbours_are_not_swapped() -> None:
    assert made("aa", operations=("swap",)) == {"aa"}
    assert made("aab", operations=("swap",)) == {"aba"}


@given(text=st.text(alphabet="ae\u0301\u0308 ก็ที่น้ำकि्षी1?", max_size=14), seed=st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_marks_stay_on_their_base(text: str, seed: int) -> None:
    (view,) = CharSwap(0.5).augment([text], np.random.default_rng(seed))
    known = set(graphemes(text)) | set("abcdefghijklmnopqrstuvwxyz ")
    assert set(graphemes(view)) <= known


def test_characters_with_their_marks() -> None:
    assert graphemes("e\u0301a") == ["e\u0301", "a"]
    assert graphemes("ที่นี่") == ["ที่", "นี่"]
    assert graphemes("👩\u200d💻!") == ["👩\u200d💻", "!"]
