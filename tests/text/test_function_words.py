"""Function words of other languages are left out where they are spoken, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import topic_texts

from coterie.describe.keywords import cluster_keywords
from coterie.text.function_words import OTHER_LANGUAGES, english_function_words, markers

TEXTS = {
    "german": [
        "Wo ist mein Paket? Ich warte schon sehr lange auf die Lieferung",
        "Das Paket ist noch nicht bei mir und ich habe keine Nachricht",
        "Mein Paket wurde von der Lieferung nicht für mich abgegeben",
    ],
    "french": [
        "Où est mon colis ? Je ne suis pas content de la livraison",
        "Mon colis n'est toujours pas là et l'adresse est bonne",
        "Le colis est chez vous depuis dix jours, pourquoi l'attente",
    ],
    "spanish": [
        "¿Dónde está mi paquete? El envío no ha llegado y ya es tarde",
        "El paquete que pedí para los niños todavía no está aquí",
        "¿Cómo puedo cambiar el envío de las cosas del paquete?",
    ],
    "italian": [
        "Dov'è il mio pacco? Non è ancora arrivato e sono stanco",
        "Il pacco che ho ordinato non è nella mia casa",
        "Perché il pacco della spedizione non è qui anche oggi",
    ],
    "portuguese": [
        "Onde está a minha encomenda? Não chegou e já é tarde",
        "A encomenda não está em casa, você pode me dizer onde",
        "Eu não sei por que a encomenda ainda está no depósito da cidade",
    ],
    "dutch": [
        "Waar is mijn pakket? Ik heb het nog niet en dat is niet goed",
        "Het pakket van mijn bestelling is er nog niet, hoe kan dat",
        "Ik wil weten waarom het pakket niet bij ons is",
    ],
}


def _keywords(texts: list[str], labels: list[int]) -> list[tuple[str, ...]]:
    return cluster_keywords(texts, np.array(labels), max(labels) + 1)


@pytest.mark.parametrize("language", TEXTS)
def test_function_words_of_the_corpus_language_are_left_out(language: str) -> None:
    (keywords,) = _keywords(TEXTS[language], [0, 0, 0])
    assert keywords
    assert not OTHER_LANGUAGES[language] & {word for keyword in keywords for word in keyword.split()}


@pytest.mark.parametrize("language", TEXTS)
def test_one_cluster_of_another_language_leaves_english_clusters_as_they_are(language: str) -> None:
    english, _ = topic_texts(97)
    # Words that are function words elsewhere mean something here.
    english += ["man will die in war", "war and man die", "door met las vegas"]
    alone = _keywords(english, [0] * 100)[0]
    together = _keywords([*english, *TEXTS[language]], [0] * 100 + [1] * 3)
    assert set(together[0]) == set(alone)
    assert not OTHER_LANGUAGES[language] & {word for keyword in together[1] for word in keyword.split()}


def test_english_words_that_mean_something_elsewhere_are_kept() -> None:
    texts = ["the man will die in the war", "a hat on a man", "the war on the door", "met a man in los angeles"] * 5
    assert {"man", "war"} <= set(_keywords(texts, [0] * 20)[0])


def test_names_of_places_are_not_spanish() -> None:
    texts = ["flights to los angeles", "las vegas flights", "cheap flights las vegas", "los angeles hotel"] * 5
    keywords = _keywords(texts, [0] * 20)[0]
    assert any("los" in keyword.split() for keyword in keywords)


def test_elided_articles_are_taken_off() -> None:
    keywords = _keywords([*TEXTS["french"], "l'adresse est dans la lettre que vous avez"], [0] * 4)[0]
    assert "adresse" in keywords and not any("'" in keyword for keyword in keywords)
    # In English an apostrophe is left alone.
    assert _keywords(["d'angelo record", "d'angelo album"], [0, 0])[0][0] == "d'angelo"


def test_texts_about_something_are_not_only_function_words() -> None:
    assert _keywords(["system on fire", "phone bill"], [0, 1]) == [("fire", "system"), ("bill", "phone")]


@pytest.mark.parametrize("language", OTHER_LANGUAGES)
def test_each_language_has_words_to_know_it_by(language: str) -> None:
    assert 60 <= len(OTHER_LANGUAGES[language]) <= 180
    assert len(markers()[language]) >= 30
    assert not markers()[language] & english_function_words()
    assert all(word == word.lower() for word in OTHER_LANGUAGES[language])


@pytest.mark.parametrize(
    ("language", "more", "words"),
    [
        ("german", "Laut Verfolgung seit zwei Tagen ab Lager, bitte", "laut seit zwei ab bitte"),
        ("spanish", "El código dice dos veces, otra vez dos, dice", "dos vez veces dice"),
        ("french", "Selon vous deux fois après trois jours", "selon deux fois après trois"),
        ("italian", "Dice due volte, secondo voi dopo tre giorni", "due volte secondo dopo tre"),
        ("portuguese", "Diz duas vezes, depois mesmo três dias", "diz duas vezes depois mesmo"),
        ("dutch", "Volgens jullie sinds twee dagen, drie keer", "volgens sinds twee drie keer"),
    ],
)
def test_small_numbers_and_prepositions_are_function_words_too(language: str, more: str, words: str) -> None:
    (keywords,) = _keywords([*TEXTS[language], more, more], [0] * 5)
    assert not set(words.split()) & {word for keyword in keywords for word in keyword.split()}
