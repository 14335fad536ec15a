"""The bundled `support` sample holds what its README says it holds."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "src" / "coterie" / "datasets" / "support"
RUN_LENGTH = 6
EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
# Words English does not have, chosen so that each message of the language holds at least one of them.
SPANISH = frozenset(["el", "los", "mi", "mis", "que", "está", "esta", "hola", "cuenta", "para", "por", "lo", "una"])
GERMAN = frozenset(["ich", "mein", "das", "der", "dem", "bitte", "ist", "guten", "wurde", "mir", "für"])


def read_rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, strict=True))


MESSAGES = read_rows("messages.csv")
TOPICS = read_rows("topics.csv")
TEXT = {row["id"]: row["text"] for row in MESSAGES}
TOPIC = {row["id"]: row["topic"] for row in TOPICS}
DUPLICATE_OF = {row["id"]: row["duplicate_of"] for row in TOPICS if row["duplicate_of"]}
FILLED = [row["id"] for row in MESSAGES if row["text"].strip()]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def root(identifier: str) -> str:
    """Follow `duplicate_of` to the message that was written first."""
    while identifier in DUPLICATE_OF:
        identifier = DUPLICATE_OF[identifier]
    return identifier


def shared_runs(texts: dict[str, str], length: int) -> list[tuple[str, set[str]]]:
    """Runs of `length` words that stand in messages of different origin, with those origins."""
    origins: defaultdict[str, set[str]] = defaultdict(set)
    for identifier, text in texts.items():
        tokens = words(text)
        for start in range(len(tokens) - length + 1):
            origins[" ".join(tokens[start : start + length])].add(root(identifier))
    return [(run, found) for run, found in origins.items() if len(found) > 1]


def hungarian_accuracy(truth: Sequence[str], clusters: Sequence[int]) -> float:
    from scipy.optimize import linear_sum_assignment

    names = sorted(set(truth))
    counts = np.zeros((max(clusters) + 1, len(names)), dtype=np.int64)
    for name, cluster in zip(truth, clusters, strict=True):
        counts[cluster, names.index(name)] += 1
    rows, columns = linear_sum_assignment(-counts)
    return float(counts[rows, columns].sum() / len(truth))


def test_columns_and_ids() -> None:
    assert list(MESSAGES[0]) == ["id", "text"]
    assert list(TOPICS[0]) == ["id", "topic", "duplicate_of"]
    # DictReader files surplus cells under None and fills missing cells with None: both mean bad quoting.
    for row in [*MESSAGES, *TOPICS]:
        assert None not in row and None not in row.values(), row
    ids = [row["id"] for row in MESSAGES]
    assert ids == [f"m{number:03d}" for number in range(1, len(ids) + 1)]
    assert [row["id"] for row in TOPICS] == ids


def test_size_and_empty_rows() -> None:
    assert len(FILLED) >= 640
    empty = [identifier for identifier in TEXT if identifier not in set(FILLED)]
    assert sorted(TEXT[identifier] for identifier in empty) == ["", "   "]
    assert all(TOPIC[identifier] == "" for identifier in empty)


def test_topics_are_twelve_and_unequal() -> None:
    sizes = Counter(TOPIC[identifier] for identifier in FILLED)
    assert len(sizes) == 12
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in sizes)
    assert max(sizes.values()) >= 10 * min(sizes.values())
    assert sizes["smalltalk"] >= 15


def test_readme_counts_are_those_of_the_files() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    counts = {name: int(count) for name, count in re.findall(r"`(\w+)` \| (\d+)", readme)}
    assert counts == Counter(TOPIC[identifier] for identifier in FILLED)
    assert f"{len(FILLED)} short messages" in readme
    exact = sum(TEXT[copy] == TEXT[first] for copy, first in DUPLICATE_OF.items())
    assert f"{exact} exact duplicates and {len(DUPLICATE_OF) - exact} near duplicates" in readme
    assert "CC0" in readme
    licence = (FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert "creativecommons.org/publicdomain/zero/1.0/legalcode" in licence


def test_rows_are_shuffled() -> None:
    order = [TOPIC[identifier] for identifier in FILLED]
    same_as_next = sum(first == second for first, second in pairwise(order)) / (len(order) - 1)
    by_chance = sum((count / len(order)) ** 2 for count in Counter(order).values())
    assert same_as_next < by_chance + 0.06


def test_duplicates_are_marked_and_stand_apart() -> None:
    exact = {copy for copy, first in DUPLICATE_OF.items() if TEXT[copy] == TEXT[first]}
    near = set(DUPLICATE_OF) - exact
    assert 12 <= len(exact) <= 20
    assert 10 <= len(near) <= 15
    for copy, first in DUPLICATE_OF.items():
        assert first in TEXT and first not in DUPLICATE_OF, f"{copy} should name the first message"
        assert TOPIC[copy] == TOPIC[first]
        assert int(copy[1:]) - int(first[1:]) >= 5, f"{copy} stands before or right after {first}"
    for copy in near:
        likeness = SequenceMatcher(None, TEXT[copy].lower(), TEXT[DUPLICATE_OF[copy]].lower()).ratio()
        assert likeness > 0.85, f"{copy} is no near duplicate of {DUPLICATE_OF[copy]}"


def test_no_duplicate_is_left_unmarked() -> None:
    origins: defaultdict[str, set[str]] = defaultdict(set)
    for identifier in FILLED:
        # Without the fallback, messages of punctuation only ("???", an emoji) would all look alike.
        origins[" ".join(words(TEXT[identifier])) or TEXT[identifier]].add(root(identifier))
    assert not {text: found for text, found in origins.items() if len(found) > 1}


def test_no_six_word_run_is_shared() -> None:
    assert not shared_runs(TEXT, RUN_LENGTH)


def test_the_run_check_sees_a_shared_run() -> None:
    planted = {**TEXT, "planted": "Well, " + TEXT[max(TEXT, key=lambda identifier: len(TEXT[identifier]))]}
    assert shared_runs(planted, RUN_LENGTH)


def test_texts_vary() -> None:
    assert len({TEXT[identifier] for identifier in FILLED}) / len(FILLED) >= 0.95
    originals = [words(TEXT[identifier]) for identifier in FILLED if identifier not in DUPLICATE_OF]
    openings = Counter(" ".join(tokens[:2]) for tokens in originals if len(tokens) > 2)
    assert max(openings.values()) <= 0.02 * len(originals)
    vocabulary = {token for tokens in originals for token in tokens}
    assert len(vocabulary) / sum(len(tokens) for tokens in originals) > 0.2
    lengths = [len(TEXT[identifier].split()) for identifier in FILLED]
    assert sum(length <= 3 for length in lengths) >= 40
    assert sum(length >= 30 for length in lengths) >= 8
    assert max(lengths) <= 45


def test_oddities_are_there() -> None:
    texts = [TEXT[identifier] for identifier in FILLED]
    assert sum(bool(EMOJI.search(text)) for text in texts) >= 8
    assert sum(text.isupper() and len(words(text)) > 1 for text in texts) >= 4
    assert sum(text == text.lower() and len(words(text)) > 3 for text in texts) >= 60


@pytest.mark.parametrize(("language", "marks"), [("Spanish", SPANISH), ("German", GERMAN)])
def test_other_languages_are_sprinkled_in(language: str, marks: frozenset[str]) -> None:
    found = [identifier for identifier in FILLED if marks.intersection(words(TEXT[identifier]))]
    assert 12 <= len(found) <= 18, [TEXT[identifier] for identifier in found]
    assert len({TOPIC[identifier] for identifier in found}) >= 8
    assert f"{len(found)} {language}" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_nobody_can_be_reached_through_it() -> None:
    for text in TEXT.values():
        assert not re.search(r"\S@\S|https?://|www\.", text), text
        assert not re.search(r"\+?\d[\d ()/-]{7,}\d", text), f"looks like a phone number: {text}"


def test_counting_words_is_not_enough() -> None:
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import TfidfVectorizer

    truth = [TOPIC[identifier] for identifier in FILLED]
    vectors = TfidfVectorizer(max_features=1500).fit_transform(TEXT[identifier] for identifier in FILLED)
    scores = [
        hungarian_accuracy(truth, KMeans(12, n_init=10, random_state=seed).fit_predict(vectors).tolist())
        for seed in range(3)
    ]
    assert np.mean(scores) < 0.70
    assert max(scores) < 0.70
    # The README's own, sharper words.
    assert max(scores) < 0.40
