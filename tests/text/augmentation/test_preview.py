"""The preview of an augmenter: views, measurements, examples and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from coterie.errors import InputError
from coterie.text.augmentation.preview import augmented_views, views_to_dict, word_changes, write_views
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.text.corpus import as_corpus

TEXTS = ["where is my parcel", "", "refund my order today", "where is my parcel"]


def test_views_of_the_distinct_texts() -> None:
    corpus = as_corpus(TEXTS)
    (view,) = augmented_views(corpus, "word_deletion", ratio=0.5, seed=3)
    assert view.augmenter == "WordDeletion(ratio=0.5)"
    assert view.texts == WordDeletion(0.5).augment(corpus.distinct, np.random.default_rng([3, 0]))
    assert view.unchanged_share < 1 and not view.from_cache and view.texts_per_second > 0
    assert [each.augmenter.split("(")[0] for each in augmented_views(corpus, "char_swap | eda")] == ["CharSwap", "EDA"]
    with pytest.raises(InputError, match="changed no text"):
        augmented_views(as_corpus(["我的包裹"]), "synonyms")


def test_rows_as_json_and_as_files(tmp_path: Path) -> None:
    corpus = as_corpus(TEXTS)
    views = augmented_views(corpus, "word_deletion(ratio=0.5)")
    content = views_to_dict(corpus, views, 1)
    assert (content["rows"], content["empty_rows"], content["distinct_texts"]) == (4, 1, 2)
    assert content["examples"] == [{"original": TEXTS[0], "augmented": views[0].texts[0]}]
    write_views(tmp_path / "out.jsonl", corpus, views)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["original"] for row in rows] == TEXTS
    assert [row["augmented"] for row in rows] == [views[0].texts[0], "", views[0].texts[1], views[0].texts[0]]


@pytest.mark.parametrize(
    ("original", "augmented", "changes"),
    [
        ("late parcel", "late parcel", [("same", "late parcel")]),
        ("is a", "is b", [("same", "is"), ("same", " "), ("removed", "a"), ("same", " "), ("added", "b")]),
        ("我的包裹", "我包裹", [("same", "我"), ("removed", "的"), ("same", "包裹")]),
        ("gone", "", [("removed", "gone")]),
    ],
)
def test_changes_word_by_word(original: str, augmented: str, changes: list[tuple[str, str]]) -> None:
    assert word_changes(original, augmented) == changes
