"""The data sets as the benchmark uses them: which rows, how many clusters, how long a text may be."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from coterie.datasets.cards import dataset_card
from coterie.errors import SettingError

# Tokens a text is cut at: the papers' 32 would cut a quarter of some of the eight short sets.
SHORT, LONG = 64, 128


@dataclass(frozen=True)
class BenchmarkSet:
    """A data set, or a part of one.

    Attributes
    ----------
    name:
        In results and tables: the data set's own.
    max_length:
        Tokens a text is cut at.
    split:
        The part that is used, where the set has parts.
    first_of_document:
        So many texts of each document are used (column ``doc``), in their order.
    drawn:
        So many texts are drawn, always the same ones.
    tuning:
        For choosing settings; in no table.
    """

    name: str
    max_length: int = SHORT
    split: str | None = None
    first_of_document: int | None = None
    drawn: int | None = None
    tuning: bool = False

    @property
    def title(self) -> str:
        return dataset_card(self.name).title


SETS: tuple[BenchmarkSet, ...] = (
    BenchmarkSet("agnews"),
    BenchmarkSet("searchsnippets"),
    BenchmarkSet("stackoverflow"),
    BenchmarkSet("biomedical"),
    BenchmarkSet("googlenews_ts"),
    BenchmarkSet("googlenews_t"),
    BenchmarkSet("googlenews_s"),
    BenchmarkSet("tweet"),
    BenchmarkSet("trec6", LONG, split="train"),
    BenchmarkSet("dbpedia14", LONG, drawn=10_000),
    BenchmarkSet("yelp5_balanced", LONG),
    BenchmarkSet("bbc_sentences", LONG, first_of_document=10),
    BenchmarkSet("agnews_raw32k", LONG),
    BenchmarkSet("snips", tuning=True),
    BenchmarkSet("twentynews_subject", tuning=True),
    BenchmarkSet("dblp", tuning=True),
    BenchmarkSet("atis", tuning=True),
    BenchmarkSet("banking77", tuning=True),
    BenchmarkSet("support", tuning=True),
)
EIGHT_SHORT = tuple(each.name for each in SETS[:8])


def find_set(name: str) -> BenchmarkSet:
    """The set called ``name``."""
    for each in SETS:
        if each.name == name:
            return each
    raise SettingError(f"the benchmark has no data set {name!r}; it has: {', '.join(each.name for each in SETS)}")


@dataclass(frozen=True)
class Loaded:
    """Texts and labels of a set, and a digest of the texts in their order."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    sha256: str

    @property
    def n_clusters(self) -> int:
        """As many as there are labels: the one thing about labels that a method is told."""
        return len(set(self.labels))


def load_set(chosen: BenchmarkSet) -> Loaded:
    """The rows of ``chosen`` that carry a label."""
    from coterie.datasets.loading import load_dataset

    data = load_dataset(chosen.name, split=chosen.split)
    rows = [row for row, label in enumerate(data.labels) if label is not None]
    if chosen.first_of_document is not None:
        rows = _first_of_document(rows, data.extra["doc"], data.labels, chosen.first_of_document)
    if chosen.drawn is not None:
        import numpy as np

        rows = sorted(np.random.default_rng(0).permutation(rows)[: chosen.drawn].tolist())
    texts = tuple(data.texts[row] for row in rows)
    labels = tuple(str(data.labels[row]) for row in rows)
    return Loaded(texts, labels, hashlib.sha256(json.dumps(texts).encode()).hexdigest())


def _first_of_document(rows: list[int], documents: Any, labels: Any, most: int) -> list[int]:
    """Documents are numbered anew in every class."""
    seen: dict[tuple[str, str], int] = {}
    kept = []
    for row in rows:
        key = (str(labels[row]), documents[row])
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= most:
            kept.append(row)
    return kept
