"""Languages by their function words, and clusters that are languages rather than subjects."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.text.language_identification import (
    TEXTS_PER_CLUSTER,
    find_language_split,
    identify_cluster_languages,
    identify_languages,
)

# One sentence a subject; what stands in the braces varies.
ENGLISH = [
    "where is the {} that I ordered from you",
    "my {} was not in the box when it came",
    "how can I pay for the {} with my card",
    "I would like to send the {} back to you",
    "the {} is broken and it does not work",
    "is there a discount on the {} if I buy two of them",
    "can you tell me what the {} is made of",
    "they have charged me twice for the {}",
    "when will the {} be in the shop again",
    "who should I call about the {} in my account",
    "this {} is not what you have shown on the page",
    "we want to know how the {} is put together",
]
GERMAN = [
    "wo ist das {}, das ich bei Ihnen bestellt habe",
    "mein {} war nicht in der Kiste, als sie ankam",
    "wie kann ich das {} mit meiner Karte bezahlen",
    "ich möchte das {} wieder an Sie zurück schicken",
    "das {} ist kaputt und es geht nicht mehr",
    "gibt es einen Rabatt auf das {}, wenn ich zwei davon kaufe",
    "können Sie mir sagen, woraus das {} gemacht ist",
    "man hat mir das {} zwei Mal berechnet",
    "wann wird das {} wieder im Laden sein",
    "wen soll ich wegen dem {} in meinem Konto anrufen",
    "dieses {} ist nicht das, was auf der Seite zu sehen war",
    "wir wollen wissen, wie man das {} zusammen baut",
]
SPANISH = [
    "dónde está el {} que pedí para mi hermana",
    "el {} no estaba en la caja cuando llegó",
    "cómo puedo pagar el {} con mi tarjeta",
    "quiero que me digan por qué el {} no funciona",
    "los que compran el {} también tienen una garantía",
    "no sé si el {} es de la misma tienda",
]
ENGLISH_THINGS = ["phone", "lamp", "chair", "bicycle", "watch", "printer", "kettle", "camera", "tent"]
GERMAN_THINGS = ["Telefon", "Fahrrad", "Buch", "Radio", "Handy", "Regal", "Kissen", "Hemd", "Zelt"]
SPANISH_THINGS = ["reloj", "libro", "teléfono", "sofá", "abrigo", "espejo", "ordenador", "vestido", "zapato"]


def _varied(sentences: list[str], things: list[str]) -> tuple[list[str], list[int]]:
    """Every sentence of every thing, and the place of the sentence."""
    made = [(sentence.format(thing), i) for thing in things for i, sentence in enumerate(sentences)]
    return [text for text, _ in made], [i for _, i in made]


TEXTS = {
    "english": _varied(ENGLISH, ENGLISH_THINGS),
    "german": _varied(GERMAN, GERMAN_THINGS[:8]),
    "spanish": _varied(SPANISH, SPANISH_THINGS),
}


@pytest.mark.parametrize("language", TEXTS)
def test_sentences_are_known_by_their_function_words(language: str) -> None:
    texts, _ = TEXTS[language]
    found = identify_languages(texts)
    assert len(found) == len(texts)
    assert found.count(language) >= 0.9 * len(texts)
    assert set(found) <= {language, ""}, "none is taken for another language"


def test_words_that_english_shares_do_not_make_a_text_english() -> None:
    dutch = [
        "ik was in de stad",
        "dit is de trein van mijn broer",
        "wat is de prijs van de fiets",
        "de kat is in de tuin",
    ]
    french = ["on me parle de lui", "je me souviens de toi", "le prix de la voiture", "un peu de pain"]
    assert "english" not in identify_languages(dutch)
    assert "english" not in identify_languages(french)


def test_a_text_without_function_words_is_of_no_known_language() -> None:
    assert identify_languages(["", "12345", "xyzzy", "???", "日本語のテキスト"]) == [""] * 5
    assert identify_languages([]) == []


def test_a_text_is_known_whatever_its_company_and_case() -> None:
    english, german = TEXTS["english"][0][0], TEXTS["german"][0][0]
    assert identify_languages([german, english, german.upper()]) == ["german", "english", "german"]
    assert [identify_languages([each])[0] for each in (german, english)] == ["german", "english"]


def test_clusters_that_are_languages() -> None:
    texts = [*TEXTS["english"][0], *TEXTS["german"][0]]
    labels = np.repeat([0, 1], [108, 96])
    assert find_language_split(texts, labels) == ("english", "german")
    assert find_language_split(texts, 1 - labels) == ("english", "german")
    order = np.random.default_rng(0).permutation(204)
    assert find_language_split([texts[i] for i in order], labels[order]) == ("english", "german")


def test_the_language_of_most_texts_is_named_first() -> None:
    texts = [*TEXTS["english"][0][:80], *TEXTS["german"][0]]
    assert find_language_split(texts, np.repeat([0, 1], [80, 96])) == ("german", "english")


def test_clusters_that_have_nothing_to_do_with_the_language() -> None:
    texts = [*TEXTS["english"][0], *TEXTS["german"][0]]
    for seed in range(5):
        labels = np.random.default_rng(seed).integers(2, size=len(texts))
        assert find_language_split(texts, labels) == ()


def test_clusters_of_subjects_across_languages() -> None:
    texts = [*TEXTS["english"][0], *TEXTS["german"][0]]
    labels = np.array([*TEXTS["english"][1], *TEXTS["german"][1]])
    assert len(set(labels.tolist())) == 12
    assert find_language_split(texts, labels) == ()


@pytest.mark.parametrize("language", TEXTS)
def test_one_language_is_not_split(language: str) -> None:
    texts, subjects = TEXTS[language]
    assert find_language_split(texts, np.array(subjects)) == ()
    assert find_language_split(texts, np.arange(len(texts)) % 2) == ()
    assert find_language_split(texts, np.zeros(len(texts), dtype=np.int64)) == ()


def test_texts_of_no_known_language_are_not_split() -> None:
    assert find_language_split(["xyzzy 1", "plugh 2"] * 50, np.arange(100) % 2) == ()


def test_a_cluster_in_another_language_than_most_texts_is_told() -> None:
    texts = [*TEXTS["english"][0][:60], *TEXTS["german"][0][:20], *TEXTS["spanish"][0][:10]]
    rows = np.arange(90)
    assert identify_cluster_languages(texts, [rows[:30], rows[30:60], rows[60:80], rows[80:]]) == [
        None,
        None,
        "german",
        "spanish",
    ]
    # The usual language is that of most texts, not English.
    assert identify_cluster_languages(texts, [rows[:10], rows[60:80]]) == ["english", None]


def test_two_other_languages_in_one_cluster_are_both_named() -> None:
    texts = [*TEXTS["english"][0][:60], *TEXTS["german"][0][:20], *TEXTS["spanish"][0][:10]]
    usual, others = np.arange(60), np.arange(60, 90)
    assert identify_cluster_languages(texts, [usual, others]) == [None, "german, spanish"]
    # Two Spanish texts among twenty German ones are not worth a word; nor are fewer others than usual ones.
    assert identify_cluster_languages(texts, [usual, others[:22]]) == [None, "german"]
    assert identify_cluster_languages(texts, [usual, np.concatenate([usual[:35], others])]) == [None, None]


def test_a_mixed_cluster_has_no_language_of_its_own() -> None:
    texts = [*TEXTS["english"][0][:60], *TEXTS["german"][0][:20]]
    mixed = np.r_[0:20, 60:79]
    assert identify_cluster_languages(texts, [mixed, np.arange(20, 60)]) == [None, None]
    # Nor has one of which the language shows in less than half of the texts.
    assert identify_cluster_languages([*texts, *["xyzzy"] * 30], [np.arange(60), np.arange(60, 110)]) == [None, None]


def test_empty_clusters_and_unknown_languages_are_none() -> None:
    assert identify_cluster_languages(["???", "12"], [np.array([0, 1]), np.array([], dtype=np.int64)]) == [None, None]
    assert identify_cluster_languages([], []) == []


def test_texts_from_all_over_a_large_cluster_are_looked_at() -> None:
    """Not its first ones alone, which may be of one day or one source."""
    english, german = TEXTS["english"][0], TEXTS["german"][0]
    few, many = [english[0]] * TEXTS_PER_CLUSTER, [german[0]] * (3 * TEXTS_PER_CLUSTER)
    texts = [*few, *many, *english * 20]
    large = np.arange(4 * TEXTS_PER_CLUSTER)
    assert identify_cluster_languages(texts, [large, np.arange(4 * TEXTS_PER_CLUSTER, len(texts))]) == ["german", None]
