"""The data sets as the benchmark uses them: which rows, how many clusters, and the length at which texts are cut."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.errors import SettingError

# Factors of the right number of clusters, for runs with a wrong number.
WRONG_K = (0.5, 0.75, 1.25, 1.5)
# Ratios of the largest class to the smallest, for runs with classes made uneven.
IMBALANCES = (5, 20, 100)
# Tokens at which texts of short-text sets are cut: the papers' 32 would cut a quarter of some sets.
SHORT = 64
# Tokens at which texts of the other sets are cut.
LONG = 128
TITLES = {
    "agnews": "AgNews",
    "searchsnippets": "SearchSnippets",
    "stackoverflow": "StackOverflow",
    "biomedical": "Biomedical",
    "googlenews_ts": "GoogleNews-TS",
    "googlenews_t": "GoogleNews-T",
    "googlenews_s": "GoogleNews-S",
    "tweet": "Tweet",
    "trec6": "TREC-6",
    "dbpedia14": "DBpedia",
    "yelp5_balanced": "Yelp",
    "bbc_sentences": "BBC sentences",
    "agnews_raw32k": "AgNews (raw)",
}


@dataclass(frozen=True)
class BenchmarkSet:
    """A data set, or a part of one.

    Attributes
    ----------
    name:
        As in results and tables.
    max_length:
        Tokens at which a text is cut.
    dataset:
        The name of the data set it is made of, if another.
    split:
        The split that is used, if the data set has splits.
    first_of_document:
        Number of texts of each document that are used (column ``doc``), in their order.
    sample_size:
        Number of texts that are sampled, the same for every run.
    imbalance:
        Ratio of the largest class to the smallest; sizes fall evenly on a logarithmic scale.
    clusters:
        The number of clusters asked for, as a factor of the right one.
    held_out:
        Share of the texts that is left out of the fit and assigned afterwards by ``predict``.
    ranking:
        For a set of questions with candidates to rank, without classes: the number of clusters asked for.
    tuning:
        Whether it serves to choose settings; such sets are in no table.
    """

    name: str
    max_length: int = SHORT
    dataset: str = ""
    split: str | None = None
    first_of_document: int | None = None
    sample_size: int | None = None
    imbalance: float = 1.0
    clusters: float = 1.0
    held_out: float = 0.0
    ranking: int | None = None
    tuning: bool = False

    @property
    def source(self) -> str:
        return self.dataset or self.name

    @property
    def title(self) -> str:
        """The name in tables and legends, with that of the part."""
        name = TITLES.get(self.source, self.source)
        return name + self.name.removeprefix(self.source).replace("-", " ", 1)


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
    BenchmarkSet("dbpedia14", LONG, sample_size=10_000),
    BenchmarkSet("yelp5_balanced", LONG),
    BenchmarkSet("bbc_sentences", LONG, first_of_document=10),
    BenchmarkSet("agnews_raw32k", LONG),
    # As many clusters as most sets of ClusterBERT have.
    BenchmarkSet("semeval2016_cqa", LONG, ranking=20),
    BenchmarkSet("snips", tuning=True),
    BenchmarkSet("twentynews_subject", tuning=True),
    BenchmarkSet("dblp", tuning=True),
    BenchmarkSet("atis", tuning=True),
    BenchmarkSet("banking77", tuning=True),
    BenchmarkSet("pascal_flickr", tuning=True),
    BenchmarkSet("ohsumed_title", tuning=True),
    BenchmarkSet("r8_short", tuning=True),
    BenchmarkSet("support", tuning=True),
    *(
        BenchmarkSet(f"{name}-k{clusters:g}", dataset=name, clusters=clusters)
        for name in ("searchsnippets", "stackoverflow")
        for clusters in WRONG_K
    ),
    *(
        BenchmarkSet(f"{name}-heldout", dataset=name, held_out=0.2)
        for name in ("agnews", "searchsnippets", "stackoverflow", "biomedical")
    ),
    *(BenchmarkSet(f"stackoverflow-i{ratio}", dataset="stackoverflow", imbalance=ratio) for ratio in IMBALANCES),
)
EIGHT_SHORT = tuple(each.name for each in SETS[:8])


def find_set(name: str) -> BenchmarkSet:
    """Return the data set called ``name``."""
    for each in SETS:
        if each.name == name:
            return each
    raise SettingError(f"the benchmark has no data set {name!r}; it has: {', '.join(each.name for each in SETS)}")


@dataclass(frozen=True)
class Question:
    """A text of a ranking set, and which of its candidates are relevant; texts are given by their position."""

    text: int
    candidates: tuple[int, ...]
    relevant: tuple[bool, ...]


@dataclass(frozen=True)
class Loaded:
    """Texts and labels of a set.

    Attributes
    ----------
    texts, labels:
        The texts that are fitted on, and their classes.
    n_clusters:
        The number of clusters a method is asked for: the number of classes, all that it gets of the labels.
    sha256:
        Digest of the texts in their order, including those held out.
    held_out, held_out_labels:
        Texts that are assigned after the fit, and their classes.
    questions:
        The questions of a ranking set, in place of labels.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    n_clusters: int
    sha256: str
    held_out: tuple[str, ...] = ()
    held_out_labels: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()


def load_set(dataset: BenchmarkSet) -> Loaded:
    """Load the rows of ``dataset`` that have a label; of a ranking set all texts, each once."""
    import numpy as np

    from coterie.datasets.loading import load_dataset, load_table

    if dataset.ranking is not None:
        return _ranking(load_table(dataset.source), dataset.ranking)
    data = load_dataset(dataset.source, split=dataset.split)
    rows = [row for row, label in enumerate(data.labels) if label is not None]
    if dataset.first_of_document is not None:
        rows = _first_of_document(rows, data.extra["doc"], data.labels, dataset.first_of_document)
    # The same rows for every method and seed.
    generator = np.random.default_rng(0)
    if dataset.sample_size is not None:
        rows = sorted(generator.permutation(rows)[: dataset.sample_size].tolist())
    if dataset.imbalance != 1:
        rows = uneven_rows(generator.permutation(rows).tolist(), data.labels, dataset.imbalance)
    apart = sorted(generator.permutation(rows)[: round(dataset.held_out * len(rows))].tolist())
    fitted = sorted(set(rows) - set(apart))
    return Loaded(
        tuple(data.texts[row] for row in fitted),
        tuple(str(data.labels[row]) for row in fitted),
        max(2, round(dataset.clusters * len({data.labels[row] for row in fitted}))),
        _digest([data.texts[row] for row in (*fitted, *apart)]),
        tuple(data.texts[row] for row in apart),
        tuple(str(data.labels[row]) for row in apart),
    )


def _ranking(columns: Mapping[str, tuple[str, ...]], n_clusters: int) -> Loaded:
    """Build a ranking set from rows of a question and a candidate each; those of a question share a ``qid``."""
    texts = tuple(dict.fromkeys((*columns["question"], *columns["candidate"])))
    position = {text: i for i, text in enumerate(texts)}
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(columns["qid"]):
        rows.setdefault(name, []).append(row)
    questions = tuple(
        Question(
            position[columns["question"][of_one[0]]],
            tuple(position[columns["candidate"][row]] for row in of_one),
            tuple(columns["label"][row] == "1" for row in of_one),
        )
        for of_one in rows.values()
    )
    return Loaded(texts, (), n_clusters, _digest(texts), questions=questions)


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()


def _first_of_document(rows: list[int], documents: Any, labels: Any, most: int) -> list[int]:
    """Return the first ``most`` rows of every document; documents are numbered within their class."""
    counts: Counter[tuple[str, str]] = Counter()
    chosen = []
    for row in rows:
        key = (str(labels[row]), documents[row])
        counts[key] += 1
        if counts[key] <= most:
            chosen.append(row)
    return chosen


def uneven_rows(rows: list[int], labels: Any, ratio: float) -> list[int]:
    """Return rows, given in random order, such that the sizes of classes fall by a factor of ``ratio`` in all."""
    names = sorted({labels[row] for row in rows})
    sizes = Counter(labels[row] for row in rows)
    remaining = {name: round(sizes[name] * ratio ** (-i / (len(names) - 1))) for i, name in enumerate(names)}
    chosen = []
    for row in rows:
        if remaining[labels[row]] > 0:
            remaining[labels[row]] -= 1
            chosen.append(row)
    return sorted(chosen)
