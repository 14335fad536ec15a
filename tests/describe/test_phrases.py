"""Phrases are listed where they tell more than their words."""

from __future__ import annotations

import numpy as np
import pytest
from call_count import calls_of

from coterie.describe.keywords import cluster_keywords, same_word
from coterie.describe.phrases import find_phrases
from coterie.describe.word_stream import read_words

NOISE = ["invoice", "garden", "winter", "coffee", "ticket", "museum", "bridge", "window", "summer", "orange"]


def _with_noise(*phrases: str, each: int = 8, seed: int = 0) -> list[str]:
    """Each phrase in some texts, between other words."""
    generator = np.random.default_rng(seed)
    texts = []
    for phrase in phrases:
        for _ in range(each):
            before, after = generator.choice(NOISE, 2, replace=False)
            texts.append(f"{before} {phrase} {after}")
    return texts


def _of_one(texts: list[str], n: int = 10) -> tuple[str, ...]:
    return cluster_keywords(texts, np.zeros(len(texts), np.int64), 1, n)[0]


def test_words_that_always_stand_together_are_one_phrase() -> None:
    keywords = _of_one(_with_noise("machine learning"))
    assert keywords[0] == "machine learning"
    assert "machine" not in keywords and "learning" not in keywords


def test_a_word_that_also_stands_elsewhere_is_listed_beside_its_phrase() -> None:
    keywords = _of_one(_with_noise("machine learning") + _with_noise("learning", each=20, seed=1))
    assert {"machine learning", "learning"} <= set(keywords)
    assert "machine" not in keywords


def test_words_that_only_share_a_cluster_are_no_phrase() -> None:
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(NOISE, 4, replace=False)) for _ in range(400)]
    assert all(" " not in keyword for keyword in _of_one(texts))


def test_two_times_together_may_be_chance() -> None:
    assert "machine learning" not in _of_one(_with_noise("machine learning", each=2))
    assert "machine learning" in _of_one(_with_noise("machine learning", each=3))


def test_no_phrase_begins_or_ends_with_a_function_word() -> None:
    keywords = _of_one(_with_noise("the terms of service are", "reset my password please"))
    assert "terms of service" in keywords and "reset my password" in keywords
    edges = {keyword.split()[end] for keyword in keywords for end in (0, -1)}
    assert not edges & {"the", "of", "are", "my", "please"}


def test_three_words_hide_the_two_within_them() -> None:
    keywords = _of_one(_with_noise("new york city council", "san francisco bay"))
    assert "york city council" in keywords and "san francisco bay" in keywords
    assert not {"york city", "city council", "san francisco", "francisco bay", "york", "bay"} & set(keywords)


def test_two_words_that_mostly_stand_without_the_third_stay_two() -> None:
    keywords = _of_one(_with_noise("machine learning", each=30) + _with_noise("machine learning course", each=8))
    assert "machine learning" in keywords and "course" in keywords
    assert "machine learning course" not in keywords


def test_of_phrases_with_the_same_words_one_is_listed() -> None:
    keywords = _of_one(_with_noise("reset password", "reset my password", "password reset", *NOISE), n=20)
    assert len([keyword for keyword in keywords if " " in keyword]) == 1


@pytest.mark.parametrize("between", [", ", ". ", "\n", " / ", " 7 ", " 😡 "])
def test_nothing_but_spaces_stands_inside_a_phrase(between: str) -> None:
    keywords = _of_one(_with_noise(f"machine{between}learning"))
    assert {"machine", "learning"} <= set(keywords)


def test_no_phrase_reaches_into_the_next_text() -> None:
    keywords = _of_one(["learning", "machine"] * 20 + NOISE)
    assert set(keywords) >= {"learning", "machine"}


def test_a_word_repeated_is_no_phrase() -> None:
    assert all(" " not in keyword for keyword in _of_one(_with_noise("ha ha ha", "wow wow")))


def test_no_pair_and_no_triple_holds_a_word_twice() -> None:
    texts = _with_noise("ha ha ha ha ha ha", "late again late", "machine learning")
    stream = read_words(texts, [np.arange(len(texts))])
    (found,) = find_phrases(stream, [np.unique(ids[ids >= 0], return_counts=True) for ids, _ in stream])
    phrases = [[word for word in parts.tolist() if word >= 0] for parts in found.parts]
    assert phrases and all(len(set(words)) == len(words) for words in phrases)


def test_one_text_that_repeats_itself_does_not_make_a_keyword() -> None:
    keywords = _of_one([*_with_noise("machine learning"), "spam offer " * 10_000])
    assert keywords[0] == "machine learning" and "spam offer" not in keywords


def test_a_phrase_of_one_cluster_made_of_words_of_all() -> None:
    shuffled = _with_noise("machine shop", "learning school", each=10)
    keywords = cluster_keywords(
        [*_with_noise("machine learning", each=10), *shuffled], np.repeat([0, 1], [10, 20]), 2, n_keywords=4
    )
    assert keywords[0][0] == "machine learning"
    assert set(keywords[1][:2]) == {"machine shop", "learning school"}


def test_single_words_alone_where_asked_for() -> None:
    texts = _with_noise("machine learning")
    keywords = cluster_keywords(texts, np.zeros(len(texts), np.int64), 1, phrases=False)[0]
    assert set(keywords[:2]) == {"learning", "machine"}


def test_forms_of_a_word_are_listed_once() -> None:
    keywords = _of_one(["activate card", "activated card", "activating card", "activate cards"])
    assert keywords == ("card", "activate")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("order", "ordered", True),
        ("fees", "fee", True),
        ("currency", "currencies", True),
        ("card", "care", False),
        ("transfer", "transit", False),
        ("covid19", "covid20", False),
        ("word", "wording", False),
    ],
)
def test_forms_of_a_word(first: str, second: str, same: bool) -> None:
    assert same_word(first, second) is same


def test_web_addresses_and_names_of_characters_are_no_keywords() -> None:
    keywords = _of_one(["parcel https://example.org/late?x=1 &amp; depot", "www.example.org/some &quot;parcel&quot;"])
    assert keywords == ("parcel", "depot")


def test_other_scripts_and_pictures() -> None:
    texts = ["כלב גדול 😀 בבית", "כלב גדול רץ", "כלב גדול ישן", "طرد متأخر جدا", "🙂🙂", "👍"]
    keywords = cluster_keywords(texts, np.array([0, 0, 0, 1, 2, 2]), 3)
    assert keywords[0][0] == "כלב גדול"
    assert set(keywords[1]) == {"طرد", "متأخر", "جدا"}
    assert keywords[2] == ()


def test_very_long_texts_and_words() -> None:
    texts = ["x" * 100_000, "late parcel " * 8_000, "late courier", "lost login"]
    keywords = cluster_keywords(texts, np.array([0, 0, 0, 1]), 2)
    assert set(keywords[0]) == {"late", "parcel", "courier"}
    assert keywords[1] == ("login", "lost")


def test_calls_grow_with_the_clusters() -> None:
    generator = np.random.default_rng(0)
    words = np.array([f"w{''.join(chr(97 + int(d)) for d in str(i))}" for i in range(3_000)])
    texts = [" ".join(row) for row in words[generator.zipf(1.3, (12_000, 9)) % 3_000]]

    def described(n: int) -> list[tuple[str, ...]]:
        return cluster_keywords(texts[: 30 * n], np.arange(30 * n) % n, n + 1)

    keywords = described(400)
    assert len(keywords) == 401 and keywords[-1] == ()
    assert all(len(set(found)) == len(found) == 10 for found in keywords[:-1])
    assert keywords == described(400)
    assert calls_of(lambda: described(400)) < 4.4 * calls_of(lambda: described(100))


def test_no_keywords_wanted_and_no_clusters() -> None:
    assert cluster_keywords(["late parcel"], np.array([0]), 1, 0) == [()]
    assert cluster_keywords([], np.array([], np.int64), 0) == []
