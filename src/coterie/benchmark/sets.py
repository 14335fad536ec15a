"""The data sets as the benchmark uses them: which rows, how many clusters, how long a text may be."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.errors import SettingError

# How wrong the number of clusters is given, and how uneven classes are made.
WRONG_K = (0.5, 0.75, 1.25, 1.5)
IMBALANCES = (5, 20, 100)
# Tokens a text is cut at: the papers' 32 would cut a quarter of some of the eight short sets.
SHORT, LONG = 64, 128
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
        In results and tables.
    max_length:
        Tokens a text is cut at.
    dataset:
        The data set's own name, where that is another.
    split:
        The part that is used, where the set has parts.
    first_of_document:
        So many texts of each document are used (column ``doc``), in their order.
    drawn:
        So many texts are drawn, always the same ones.
    imbalance:
        The largest class is made so many times the smallest: sizes fall evenly on a logarithmic scale.
    clusters:
        A method is asked for so many times the right number of clusters.
    held_out:
        So large a part of the texts is not fitted on, and assigned afterwards by ``predict``.
    ranking:
        Questions with candidates to rank, and no classes: so many clusters are asked for.
    tuning:
        For choosing settings; in no table.
    """

    name: str
    max_length: int = SHORT
    dataset: str = ""
    split: str | None = None
    first_of_document: int | None = None
    drawn: int | None = None
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
        """Short enough for a legend; a part of a set tells which."""
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
    BenchmarkSet("dbpedia14", LONG, drawn=10_000),
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
    """The set called ``name``."""
    for each in SETS:
        if each.name == name:
            return each
    raise SettingError(f"the benchmark has no data set {name!r}; it has: {', '.join(each.name for each in SETS)}")


@dataclass(frozen=True)
class Question:
    """A text of a ranking set, and which of its candidates are relevant; texts by their place in the set."""

    text: int
    candidates: tuple[int, ...]
    relevant: tuple[bool, ...]


@dataclass(frozen=True)
class Loaded:
    """Texts and labels of a set.

    Attributes
    ----------
    texts, labels:
        What is fitted on.
    n_clusters:
        How many a method is asked for: as many as there are labels, the one thing about labels that it is told.
    sha256:
        Of the texts in their order, those held out included.
    held_out, held_out_labels:
        What is assigned afterwards.
    questions:
        Of a ranking set, in place of labels.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    n_clusters: int
    sha256: str
    held_out: tuple[str, ...] = ()
    held_out_labels: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()


def load_set(dataset: BenchmarkSet) -> Loaded:
    """The rows of ``dataset`` that carry a label; all texts of a ranking set, each once."""
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
    if dataset.drawn is not None:
        rows = sorted(generator.permutation(rows)[: dataset.drawn].tolist())
    if dataset.imbalance != 1:
        rows = _uneven(generator.permutation(rows).tolist(), data.labels, dataset.imbalance)
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
    """Rows are questions with one candidate each; those of a question have the same ``qid``."""
    texts = tuple(dict.fromkeys((*columns["question"], *columns["candidate"])))
    place = {text: i for i, text in enumerate(texts)}
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(columns["qid"]):
        rows.setdefault(name, []).append(row)
    questions = tuple(
        Question(
            place[columns["question"][of_one[0]]],
            tuple(place[columns["candidate"][row]] for row in of_one),
            tuple(columns["label"][row] == "1" for row in of_one),
        )
        for of_one in rows.values()
    )
    return Loaded(texts, (), n_clusters, _digest(texts), questions=questions)


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()


def _first_of_document(rows: list[int], documents: Any, labels: Any, most: int) -> list[int]:
    """Documents are numbered anew in every class."""
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for row in rows:
        key = (str(labels[row]), documents[row])
        seen[key] += 1
        if seen[key] <= most:
            kept.append(row)
    return kept


def _uneven(rows: list[int], labels: Any, ratio: float) -> list[int]:
    """``rows`` (in random order) with the classes, by name, from their full size down to a ``ratio``-th."""
    names = sorted({labels[row] for row in rows})
    sizes = Counter(labels[row] for row in rows)
    room = {name: round(sizes[name] * ratio ** (-i / (len(names) - 1))) for i, name in enumerate(names)}
    kept = []
    for row in rows:
        if room[labels[row]] > 0:
            room[labels[row]] -= 1
            kept.append(row)
    return sorted(kept)
