"""What every augmenter by rule keeps to, and what each of them does to the words of a text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from conftest import topic_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.errors import SettingError
from coterie.text.augmentation.base import Augmenter, unchanged_share
from coterie.text.augmentation.char_swap import CharSwap
from coterie.text.augmentation.composition import Composition
from coterie.text.augmentation.eda import EDA
from coterie.text.augmentation.random_insertion import RandomInsertion
from coterie.text.augmentation.random_swap import RandomSwap
from coterie.text.augmentation.synonyms import Synonyms
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.text.augmentation.wordnet import STOP_WORDS, synonyms_of
from coterie.text.word_segmentation import split_words

RULES: list[Augmenter] = [
    WordDeletion(0.3),
    RandomSwap(0.3),
    RandomInsertion(0.3),
    Synonyms(0.3),
    EDA(0.3),
    CharSwap(0.3),
    Composition(Synonyms(0.2), CharSwap(0.2)),
]
every_rule = pytest.mark.parametrize("augmenter", RULES, ids=lambda rule: type(rule).__name__)
WORDS = ["the", "of", "error", "Queries", "file,", "(computer)", "xyzzy", "a", "I'm", "2024", "包裹", "ไทย", "...", "é"]
texts = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join) | st.text(alphabet="ab ?\t中ท", max_size=8), max_size=6
)
seeds = st.integers(0, 1000)
CHINESE = ["我的包裹在哪里？", "密码忘记了，怎么登录？", "请退款到我的银行卡"] * 5
THAI = ["พัสดุของฉันอยู่ที่ไหน", "ลืมรหัสผ่านเข้าสู่ระบบไม่ได้"] * 5


def made(augmenter: Augmenter, given: list[str], seed: int = 0) -> list[str]:
    return augmenter.augment(given, np.random.default_rng(seed))


def within(part: str, whole: str) -> bool:
    """Whether the words of ``part`` stand in ``whole`` in this order.

    Where words touch it is the characters that count: new neighbours may look like one word.
    """
    if part.isascii() and whole.isascii():
        return is_in_order(part.split(), whole.split())
    return is_in_order(list("".join(part.split())), list("".join(whole.split())))


def is_in_order(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(word in rest for word in part)


# --- all of them ---


@every_rule
@given(given=texts, seed=seeds)
@settings(max_examples=40, deadline=None)
def test_a_row_in_a_row_out_and_none_becomes_empty(augmenter: Augmenter, given: list[str], seed: int) -> None:
    before = list(given)
    views = made(augmenter, given, seed)
    assert given == before
    assert len(views) == len(given)
    for text, view in zip(given, views, strict=True):
        if text.strip():
            assert view.strip()
        else:
            assert view == text
    assert views == made(augmenter, given, seed)


@every_rule
def test_the_generator_alone_decides(augmenter: Augmenter) -> None:
    given, _ = topic_texts(40)
    generator = np.random.default_rng(7)
    first = augmenter.augment(given, generator)
    assert first == made(augmenter, given, 7)
    assert first != augmenter.augment(given, generator)
    assert first != made(augmenter, given, 8)


@every_rule
def test_almost_every_text_changes(augmenter: Augmenter) -> None:
    given, _ = topic_texts(60)
    assert unchanged_share(given, made(augmenter, given)) < (0.4 if isinstance(augmenter, WordDeletion) else 0.01)


@pytest.mark.parametrize("ratio", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("kind", [WordDeletion, RandomSwap, RandomInsertion, Synonyms, CharSwap])
def test_the_strengths_of_the_papers(kind: type[Augmenter], ratio: float) -> None:
    given, _ = topic_texts(60)
    views = kind(ratio).augment(given, np.random.default_rng(0))  # type: ignore[call-arg]
    assert unchanged_share(given, views) < 1


@pytest.mark.parametrize("kind", [WordDeletion, RandomSwap, RandomInsertion, Synonyms, CharSwap])
def test_a_larger_ratio_changes_more(kind: type[Augmenter]) -> None:
    text = " ".join(f"{word} error" for word in ["query", "file", "table", "computer", "money"] * 4)

    def kept(ratio: float) -> float:
        views = kind(ratio).augment([text] * 20, np.random.default_rng(0))  # type: ignore[call-arg]
        places = [sum(a == b for a, b in zip(text.split(), view.split(), strict=False)) for view in views]
        return float(np.mean(places))

    assert kept(0.1) > kept(0.3)


@every_rule
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, float("nan"), "much"])
def test_a_share_that_is_none_is_named(augmenter: Augmenter, value: object) -> None:
    if isinstance(augmenter, Composition):
        augmenter = Composition(WordDeletion(value))  # type: ignore[arg-type]
    else:
        name = "alpha" if isinstance(augmenter, EDA) else "ratio"
        augmenter = replace(augmenter, **{name: value})
    with pytest.raises(SettingError, match=r"(ratio|alpha)="):
        augmenter.check()
    with pytest.raises(SettingError, match=r"(ratio|alpha)="):
        made(augmenter, ["a b"])


@pytest.mark.parametrize("augmenter", [WordDeletion(0.3), RandomSwap(0.3), EDA(0.3), CharSwap(0.3)])
@pytest.mark.parametrize("given", [CHINESE, THAI], ids=["Chinese", "Thai"])
def test_texts_without_spaces_change_and_get_none(augmenter: Augmenter, given: list[str]) -> None:
    views = made(augmenter, given)
    assert unchanged_share(given, views) < 0.35
    assert not any(" " in view for view in views)


# --- deletion, swap, insertion, synonyms: how the words of a view relate to those of the text ---


@given(given=texts, seed=seeds, ratio=st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=60, deadline=None)
def test_deletion_leaves_words_in_their_order(given: list[str], seed: int, ratio: float) -> None:
    for augmenter in (WordDeletion(ratio), EDA(ratio, operations=("deletion",))):
        for text, view in zip(given, made(augmenter, given, seed), strict=True):
            assert within(view, text)


@given(given=texts, seed=seeds, ratio=st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=60, deadline=None)
def test_swapping_keeps_the_words(given: list[str], seed: int, ratio: float) -> None:
    for text, view in zip(given, made(RandomSwap(ratio), given, seed), strict=True):
        words = split_words(text)
        assert Counter("".join(view.split())) == Counter("".join(text.split()))
        if text.isascii():
            assert Counter(view.split()) == Counter(words)
            assert (view != text) == (len(set(words)) > 1)


@given(given=texts, seed=seeds, ratio=st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=60, deadline=None)
def test_insertion_keeps_the_words_in_their_order(given: list[str], seed: int, ratio: float) -> None:
    for text, view in zip(given, made(RandomInsertion(ratio), given, seed), strict=True):
        assert within(text, view)


def test_what_is_inserted_is_a_synonym_of_a_word_that_is_there() -> None:
    text = "the queries of the error"
    views = made(RandomInsertion(0.2, candidates=None), [text] * 200)
    added = {tuple(sorted((Counter(view.split()) - Counter(text.split())).elements())) for view in views}
    known = {*synonyms_of("query"), *synonyms_of("error")}
    assert added == {tuple(sorted(synonym.split())) for synonym in known}
    places = {view.split().index("queries") for view in views}
    assert len(places) > 1


def test_synonyms_replace_as_many_words_as_the_ratio_says() -> None:
    text = " ".join(["query"] * 20)
    for ratio, changed in ((0.1, 2), (0.2, 4), (0.3, 6), (0.01, 1)):
        for view in made(Synonyms(ratio), [text] * 10):
            assert sum(word != "query" for word in view.split()) == changed
    assert {word for view in made(Synonyms(0.3), [text] * 50) for word in view.split()} == {
        "query",
        *synonyms_of("query"),
    }


def test_candidates_are_the_commonest() -> None:
    first = synonyms_of("error")[0]
    assert set(made(Synonyms(0.5, candidates=1), ["error"] * 20)) == {first}
    assert set(made(RandomInsertion(0.5, candidates=1), ["error"] * 20)) == {f"error {first}", f"{first} error"}
    assert set(made(EDA(0.5, operations=("synonyms",), candidates=1), ["error"] * 20)) == {first}
    for kind in (Synonyms, RandomInsertion, EDA):
        with pytest.raises(SettingError, match="candidates=0"):
            kind(candidates=0).check()


@given(
    given=st.lists(st.sampled_from(["the", "of", "don't", "Is", "error", "query"]), min_size=1, max_size=8), seed=seeds
)
@settings(max_examples=100, deadline=None)
def test_stop_words_are_spared(given: list[str], seed: int) -> None:
    stop_words = [word for word in given if word.lower() in STOP_WORDS]
    for augmenter in (Synonyms(0.9), EDA(0.9, operations=("synonyms",))):
        (view,) = made(augmenter, [" ".join(given)], seed)
        assert [word for word in view.split() if word.lower() in STOP_WORDS] == stop_words
        assert (view != " ".join(given)) == (len(stop_words) < len(given))


def test_capitals_and_punctuation_stay() -> None:
    for text, pattern in (
        ("ERROR", str.isupper),
        ("Error", str.istitle),
        ("error", str.islower),
    ):
        synonyms = [view for view in made(Synonyms(0.9), [text] * 40) if " " not in view]
        assert synonyms
        assert all(map(pattern, synonyms))
    assert all(view.startswith("(") and view.endswith("'s)!") for view in made(Synonyms(0.9), ["(error's)!"] * 20))


def test_texts_of_one_word() -> None:
    one = ["error", "xyzzy"]
    assert made(WordDeletion(0.9), one) == one
    assert made(RandomSwap(0.9), one) == one
    error, unknown = made(Synonyms(0.9), one)
    assert error in synonyms_of("error")
    assert unknown == "xyzzy"
    error, unknown = made(RandomInsertion(0.9), one)
    assert is_in_order(["error"], error.split()) and len(error.split()) > 1
    assert unknown == "xyzzy"
    error, unknown = made(EDA(0.9), one)
    assert error != "error" and unknown == "xyzzy"
    assert all(view != text for view, text in zip(made(CharSwap(0.9), one), one, strict=True))


# --- EDA ---


def test_each_operation_has_its_turn() -> None:
    text = "query error table money computer"
    views = made(EDA(0.1), [text] * 400)
    kinds = Counter(
        "deletion" if len(view.split()) < 5
        # Synonyms may have several words, so the words of the text tell the rest apart.
        else "swap" if Counter(view.split()) == Counter(text.split())
        else "insertion" if is_in_order(text.split(), view.split())
        else "synonyms"
        for view in views
    )  # fmt: skip
    assert set(kinds) == {"deletion", "swap", "insertion", "synonyms"}
    assert min(kinds.values()) > 60


def test_an_operation_that_can_do_nothing_gives_way() -> None:
    nonsense = ["xyzzy plugh quux"] * 40
    views = made(EDA(0.1), nonsense)
    assert not set(views) & set(nonsense)
    assert {len(view.split()) for view in views} == {2, 3}
    assert made(EDA(0.1, operations=("synonyms", "insertion")), nonsense) == nonsense


def test_deletion_in_eda_takes_so_many_words() -> None:
    text = " ".join(f"w{i}" for i in range(20))
    assert {len(view.split()) for view in made(EDA(0.25, operations=("deletion",)), [text] * 20)} == {15}
    assert {len(view.split()) for view in made(EDA(0.01, operations=("deletion",)), [text] * 20)} == {19}
    assert {len(view.split()) for view in made(EDA(0.99, operations=("deletion",)), ["a b"] * 20)} == {1}


@pytest.mark.parametrize("operations", [(), ("swap", "swap"), ("turn",), ["swap"], "swap"])
def test_operations_that_cannot_work_are_named(operations: object) -> None:
    for augmenter in (EDA(operations=operations), CharSwap(operations=operations)):  # type: ignore[arg-type]
        with pytest.raises(SettingError, match="operations"):
            augmenter.check()


# --- composition ---


def test_a_composition_works_in_order() -> None:
    given, _ = topic_texts(10)
    generator = np.random.default_rng(3)
    expected = CharSwap(0.2).augment(WordDeletion(0.4).augment(given, generator), generator)
    assert made(Composition(WordDeletion(0.4), CharSwap(0.2)), given, 3) == expected
    with pytest.raises(SettingError, match="at least one"):
        made(Composition(), given)


def test_one_slow_member_makes_a_composition_slow() -> None:
    class Slow(WordDeletion):
        slow = True

    assert Composition(WordDeletion(), Slow()).slow
    assert not Composition(WordDeletion(), CharSwap()).slow
    assert not Composition.slow
    assert Composition(WordDeletion(0.1)) == Composition(WordDeletion(0.1)) != Composition(WordDeletion(0.2))
