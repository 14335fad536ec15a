"""Every tuning set has the sizes it is meant to have, and the same texts each time."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from coterie.errors import SettingError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import tuning_sets
from tuning_sets import DATASETS, MOST_TEXTS, TUNING_SETS

# Number of texts, of the largest class, and of the smallest.
SIZES = {
    "banking77, uneven": (837, 48, 4),
    "snips, uneven": (3999, 1621, 81),
    "pascal_flickr, uneven": (1370, 231, 8),
    "twentynews_subject, uneven": (1208, 184, 9),
    "dblp, even": (4000, 1000, 1000),
    "r8_short, even": (1000, 200, 200),
    "ohsumed_title, even": (2000, 200, 200),
    "snips, few": (300, 59, 35),
    "pascal_flickr, few": (400, 25, 12),
    "mixed": (3669, 25, 19),
    "mixed, uneven": (2101, 75, 8),
}
CLASSES = {"r8_short, even": 5, "ohsumed_title, even": 10, "mixed": 147, "mixed, uneven": 147}


class LengthEncoder:
    """Stands for the sentence encoder: a vector is the length of its text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        return np.array([[len(text)] for text in texts], dtype=np.float32)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> LengthEncoder:
    made = LengthEncoder()
    monkeypatch.setattr(tuning_sets, "_encoder", lambda: made)
    return made


@pytest.fixture
def labels() -> np.ndarray:
    """Labels of 60, 50, 40 and 30 texts, in random order."""
    return np.random.default_rng(5).permutation(np.repeat(["a", "b", "c", "d"], [60, 50, 40, 30]))


def test_rows_per_class_are_at_most_as_many_as_asked_for(labels: np.ndarray) -> None:
    rows = tuning_sets.rows_per_class(labels, 45)
    assert Counter(labels[rows].tolist()) == {"a": 45, "b": 45, "c": 40, "d": 30}
    assert (np.diff(rows) > 0).all()


def test_uneven_classes_fall_from_one_size_by_the_ratio(labels: np.ndarray) -> None:
    rows = tuning_sets.rows_of_uneven_classes(labels, 8)
    assert Counter(labels[rows].tolist()) == {"a": 30, "b": 15, "c": 8, "d": 4}


def test_uneven_classes_have_four_thousand_texts_at_most() -> None:
    rows = tuning_sets.rows_of_uneven_classes(np.repeat(["a", "b"], 9_000), 9)
    assert len(rows) == MOST_TEXTS
    assert Counter((rows >= 9_000).tolist()) == {False: 3600, True: 400}


def test_sizes_fall_by_a_power_of_the_rank(labels: np.ndarray) -> None:
    rows = tuning_sets.rows_by_rank(labels, 0.5, 30)
    assert sorted(Counter(labels[rows].tolist()).values()) == [15, 17, 21, 30]
    rows = tuning_sets.rows_by_rank(labels, 5)
    assert sorted(Counter(labels[rows].tolist()).values())[:3] == [3, 3, 3]


@pytest.mark.parametrize("name", TUNING_SETS)
def test_texts_are_distinct_and_the_same_each_time(name: str) -> None:
    if "support" not in name and not os.environ.get("COTERIE_DATA"):
        pytest.skip("COTERIE_DATA is not set: the data files are not part of the project")
    texts, labels = TUNING_SETS[name]()
    again, labels_again = TUNING_SETS[name]()
    assert texts == again
    assert labels.tolist() == labels_again.tolist()
    assert len(texts) == len(set(texts)) == len(labels) <= MOST_TEXTS
    sizes = Counter(labels.tolist())
    if name in SIZES:
        assert (len(texts), max(sizes.values()), min(sizes.values())) == SIZES[name]
    elif "classes" in name:
        assert len(sizes) == int(name.split()[-2])
    if name in CLASSES:
        assert len(sizes) == CLASSES[name]
    dataset = name.split(",")[0]
    if dataset in DATASETS:
        label_of = dict(zip(*tuning_sets.whole(dataset), strict=True))
        assert labels.tolist() == [label_of[text] for text in texts]


def test_sets_are_selected_by_name_and_embedded_once(tmp_path: Path, encoder: LengthEncoder) -> None:
    names = ["support, 5 classes", "support"]
    (part, *_), (whole, *_) = first = list(tuning_sets.tuning_sets(tmp_path, names))
    assert [part, whole] == names
    for _, corpus, labels, vectors in first:
        assert vectors[:, 0].tolist() == [len(text) for text in corpus.texts]
        assert len(labels) == len(corpus.distinct) == len(corpus)
    assert len(encoder.texts) == len(set(encoder.texts)) == len(first[1][1])
    again = list(tuning_sets.tuning_sets(tmp_path, names))
    assert len(encoder.texts) == len(first[1][1])
    assert (again[0][3] == first[0][3]).all()


def test_texts_beyond_the_sample_are_embedded_by_themselves(tmp_path: Path, encoder: LengthEncoder) -> None:
    texts, _ = tuning_sets.sample("support")
    chosen = ["a text of no sample", *texts[:3]]
    vectors = tuning_sets.vectors_of("support, uneven", chosen, tmp_path)
    assert vectors[:, 0].tolist() == [len(text) for text in chosen]
    assert len(list(tmp_path.glob("support-uneven.*.npy"))) == 1
    # Another text gets another file: as many texts are not the same texts.
    assert tuning_sets.vectors_of("support, uneven", ["another"], tmp_path).tolist() == [[7.0]]


def test_a_set_of_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"'snips, odd'.*snips, uneven"):
        list(tuning_sets.tuning_sets(tmp_path, ["snips, odd"]))
