"""The sets that settings are decided on, and no others (docs/PROTOCOL.md, rule 1).

    for name, corpus, labels, vectors in tuning_sets(Path("embeddings"), ["snips, uneven"]): ...

A tuning set is a sample of at most 4,000 distinct texts of a data set, or a part of one: some of its classes, or class
sizes made uneven or equal, or few texts. Two sets mix the classes of five data sets. Every sample has a fixed seed.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.benchmark.sets import find_set, load_set, uneven_rows
from coterie.encoders.device import resolve_device
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.errors import SettingError
from coterie.text.corpus import Corpus, as_corpus
from coterie.text.sampling import draw_sample

# Texts, and their labels as an array of strings.
Texts = tuple[list[str], NDArray[Any]]

# Distinct texts of a tuning set: enough for 147 classes, and few enough to try many settings.
MOST_TEXTS = 4_000
# Tokens at which texts are cut, as for the short-text sets of the benchmark.
MAX_LENGTH = 64
# The data sets that all others are made of.
DATASETS = (
    "support",
    "atis",
    "snips",
    "banking77",
    "twentynews_subject",
    "dblp",
    "pascal_flickr",
    "ohsumed_title",
    "r8_short",
)
# Some classes of a sample: the data set, the number of classes, and the seed that selects them.
PARTS = (
    ("support", 5, 1),
    ("support", 8, 18),
    ("snips", 4, 15),
    ("snips", 5, 16),
    ("banking77", 6, 21),
    ("banking77", 8, 1),
    ("banking77", 10, 11),
    ("banking77", 15, 2),
    ("banking77", 20, 12),
    ("banking77", 30, 3),
    ("banking77", 40, 13),
    ("banking77", 50, 4),
    ("banking77", 60, 14),
    ("twentynews_subject", 5, 1),
    ("twentynews_subject", 7, 19),
    ("twentynews_subject", 10, 2),
    ("twentynews_subject", 15, 17),
    ("dblp", 3, 20),
)
# The data sets whose classes are mixed.
MIXED = ("snips", "banking77", "pascal_flickr", "twentynews_subject", "ohsumed_title")


@functools.cache
def whole(name: str) -> Texts:
    """Return all distinct texts of a data set; a text with several labels has its last one."""
    loaded = load_set(find_set(name))
    label_of = dict(zip(loaded.texts, loaded.labels, strict=True))
    texts = list(as_corpus(loaded.texts).distinct)
    return texts, np.array([label_of[text] for text in texts])


def sample(name: str, size: int = MOST_TEXTS) -> Texts:
    """Return at most ``size`` distinct texts of a data set."""
    texts, labels = whole(name)
    return take(texts, labels, draw_sample(as_corpus(texts), size, 0).drawn)


def some_classes(name: str, n_classes: int, seed: int) -> Texts:
    """Return the texts of some classes of the sample of a data set."""
    texts, labels = sample(name)
    chosen = np.random.default_rng(seed).choice(np.unique(labels), n_classes, replace=False)
    return take(texts, labels, np.flatnonzero(np.isin(labels, chosen)))


def few(name: str, size: int) -> Texts:
    """Return ``size`` texts of the sample of a data set."""
    texts, labels = sample(name)
    return take(texts, labels, draw_sample(as_corpus(texts), size, 0).drawn)


def even(name: str, n_classes: int, size: int) -> Texts:
    """Return ``size`` texts of each of the largest classes of a data set."""
    texts, labels = whole(name)
    names, sizes = np.unique(labels, return_counts=True)
    largest = names[np.argsort(-sizes, kind="stable")[:n_classes]]
    rows = rows_per_class(labels, size)
    return take(texts, labels, rows[np.isin(labels[rows], largest)])


def uneven(name: str, ratio: float) -> Texts:
    """Return texts of a data set such that class sizes fall evenly on a logarithmic scale, by ``ratio`` in all."""
    texts, labels = whole(name)
    return take(texts, labels, rows_of_uneven_classes(labels, ratio))


def uneven_by_rank(name: str) -> Texts:
    """Return texts of the sample of a data set such that class sizes fall with the root of their rank."""
    texts, labels = sample(name)
    return take(texts, labels, rows_by_rank(labels, 0.5))


def very_uneven_by_rank(name: str) -> Texts:
    """Return texts of a data set such that class sizes fall with their rank."""
    texts, labels = whole(name)
    return take(texts, labels, rows_by_rank(labels, 1.0))


def mixed(size: int) -> Texts:
    """Return at most ``size`` texts of every class of five data sets; a text in several has its first label."""
    label_of: dict[str, str] = {}
    for name in MIXED:
        texts, labels = whole(name)
        for text, label in zip(texts, labels.tolist(), strict=True):
            label_of.setdefault(text, f"{name}: {label}")
    texts, labels = list(label_of), np.array(list(label_of.values()))
    return take(texts, labels, rows_per_class(labels, size))


def mixed_by_rank(size: int, exponent: float) -> Texts:
    """Return texts of every class of five data sets such that class sizes fall from ``size`` by a power of the rank."""
    texts, labels = mixed(size)
    return take(texts, labels, rows_by_rank(labels, exponent, size))


def take(texts: list[str], labels: NDArray[Any], rows: NDArray[np.int64]) -> Texts:
    return [texts[row] for row in rows], labels[rows]


def rows_per_class(labels: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Return ``size`` random rows of every class, or all of a smaller one; ascending."""
    order = np.random.default_rng(0).permutation(len(labels))
    return np.sort(np.concatenate([order[labels[order] == label][:size] for label in np.unique(labels)]))


def rows_of_uneven_classes(labels: NDArray[Any], ratio: float) -> NDArray[np.int64]:
    """Return rows such that class sizes, equal at first, fall evenly on a logarithmic scale, by ``ratio`` in all."""
    names, sizes = np.unique(labels, return_counts=True)
    shares = ratio ** (-np.arange(len(names)) / (len(names) - 1))
    rows = rows_per_class(labels, min(int(sizes.min()), int(MOST_TEXTS / shares.sum())))
    return np.array(uneven_rows(np.random.default_rng(0).permutation(rows).tolist(), labels, ratio))


def rows_by_rank(labels: NDArray[Any], exponent: float, size: int | None = None) -> NDArray[np.int64]:
    """Return rows such that class sizes, ``size`` or that of the class at first, fall by a power of a random rank.

    The smallest class has at least three rows.
    """
    chosen: list[int] = []
    for rank, label in enumerate(np.random.default_rng(0).permutation(np.unique(labels))):
        rows = np.flatnonzero(labels == label)
        chosen += rows[: max(3, round((size or len(rows)) / (1 + rank) ** exponent))].tolist()
    return np.sort(chosen)


TUNING_SETS: dict[str, Callable[[], Texts]] = {
    **{name: partial(sample, name) for name in DATASETS},
    **{f"{name}, {n_classes} classes": partial(some_classes, name, n_classes, seed) for name, n_classes, seed in PARTS},
    # Sizes fall by 77 ** 0.5 = 9, beside the differences there were.
    "banking77, uneven": partial(uneven_by_rank, "banking77"),
    "snips, uneven": partial(uneven, "snips", 20),
    "pascal_flickr, uneven": partial(uneven, "pascal_flickr", 30),
    "twentynews_subject, uneven": partial(uneven, "twentynews_subject", 20),
    "dblp, even": partial(even, "dblp", 4, 1_000),
    "r8_short, even": partial(even, "r8_short", 5, 200),
    "ohsumed_title, even": partial(even, "ohsumed_title", 10, 200),
    "snips, few": partial(few, "snips", 300),
    "pascal_flickr, few": partial(few, "pascal_flickr", 400),
    "mixed": partial(mixed, 25),
    # Sizes fall from 75, as four of the 147 classes have fewer texts, by 147 ** 0.44 = 9.
    "mixed, uneven": partial(mixed_by_rank, 75, 0.44),
    # Sizes fall by about 70 to 100.
    "banking77, very uneven": partial(very_uneven_by_rank, "banking77"),
    "snips, very uneven": partial(uneven, "snips", 100),
    "pascal_flickr, very uneven": partial(uneven, "pascal_flickr", 100),
    "mixed, very uneven": partial(mixed_by_rank, 300, 1.0),
}


def tuning_sets(
    cache: Path, names: Collection[str] = ()
) -> Iterator[tuple[str, Corpus, list[str], NDArray[np.float32]]]:
    """Yield the name, the texts, their labels and one vector per text of the tuning sets, or of those in ``names``.

    Vectors are those of the frozen encoder. They are stored in the folder ``cache``.
    """
    unknown = sorted(set(names) - set(TUNING_SETS))
    if unknown:
        raise SettingError(f"no tuning set is called {unknown[0]!r}; they are: {'; '.join(TUNING_SETS)}")
    for name in names or TUNING_SETS:
        texts, labels = TUNING_SETS[name]()
        yield name, as_corpus(texts), labels.tolist(), vectors_of(name, texts, cache)


def vectors_of(name: str, texts: list[str], cache: Path) -> NDArray[np.float32]:
    """Return the vectors of a tuning set; texts of the sample of its data set have the same vectors there."""
    dataset = name.split(",")[0]
    known: dict[str, NDArray[np.float32]] = {}
    if dataset in DATASETS:
        sampled, _ = sample(dataset)
        known = dict(zip(sampled, embedded(sampled, cache / f"{dataset}.{MOST_TEXTS}.npy"), strict=True))
    others = [text for text in texts if text not in known]
    if others:
        digest = hashlib.sha256("\n".join(others).encode()).hexdigest()[:12]
        file = cache / f"{name.replace(', ', '-')}.{digest}.npy"
        known |= dict(zip(others, embedded(others, file), strict=True))
    return np.stack([known[text] for text in texts])


def embedded(texts: list[str] | tuple[str, ...], file: Path) -> NDArray[np.float32]:
    """Return one vector per text from ``file``, or embed the texts and store their vectors there."""
    if file.is_file():
        found: NDArray[np.float32] = np.load(file)
        if len(found) == len(texts):
            return found
    vectors = _encoder().encode(texts)
    np.save(file, vectors)
    return vectors


@functools.cache
def _encoder() -> TransformerEncoder:
    return TransformerEncoder.load(DEFAULT_MODEL, max_length=MAX_LENGTH, device=resolve_device("auto"))
