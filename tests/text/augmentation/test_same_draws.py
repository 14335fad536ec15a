"""A seed gives the same texts in every version: what was drawn once is pinned by its digest."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from conftest import topic_texts

from coterie.text.augmentation.base import draw_below
from coterie.text.augmentation.registry import parse_augmenter

ODD = [
    "",
    "  ",
    "word",
    " padded ",
    "two  spaces here",
    "我的包裹，在Berlin吗？ hello",
    "a\tb\nc",
    "Where IS it?",
    "a a",
]
LONG = [" ".join(["where is the late parcel that i ordered"] * 9)]


@pytest.mark.parametrize(
    ("spec", "digest"),
    [
        ("word_deletion", "f4d1fbc2e64d6ecf"),
        ("word_deletion(ratio=0.02)", "26589e2864ba8bdb"),
        ("word_deletion(ratio=0.6)", "4ff3233e717824c9"),
        ("word_deletion(ratio=0.95)", "2c50fce13a56639d"),
        ("eda", "a89745febeab8f61"),
        ("eda(alpha=0.4)", "106556e929edc9ff"),
        ("random_swap", "12e03e5ddb30691f"),
        ("random_insertion(ratio=0.4)", "159d8b3d9d4da674"),
        ("synonyms", "a8182df62f45decc"),
        ("word_deletion(ratio=0.5)+char_swap", "e184b0266e1259c2"),
    ],
)
def test_the_same_seed_gives_the_same_texts(spec: str, digest: str) -> None:
    texts = topic_texts(400)[0] + ODD * 30 + LONG * 20
    generator = np.random.default_rng([3, 1, 4])
    generator.integers(5)  # leaves half a number in the generator
    made = parse_augmenter(spec).augment(texts, generator)
    left = generator.integers(1000, size=5).tolist()
    assert hashlib.sha256(repr((made, left)).encode("utf-8")).hexdigest()[:16] == digest


@pytest.mark.parametrize("n", [0, 1, 4, 5, 30])
@pytest.mark.parametrize("bound", [1, 2, 7, 3_000_000_000])
def test_single_draws_are_those_of_an_array(n: int, bound: int) -> None:
    one, other = np.random.default_rng(n), np.random.default_rng(n)
    for _ in range(5):
        assert draw_below(bound, n, one) == other.integers(bound, size=n).tolist()
    assert one.random() == other.random()
    assert one.integers(9) == other.integers(9)
