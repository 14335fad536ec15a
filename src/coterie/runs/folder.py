"""What a run leaves behind, written whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from coterie.errors import InputError
from coterie.runs.saved_run import BEST_GUESS, CLUSTERS_FILE, RUN_FILE, read_told_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from coterie.describe.cards import ClusterCard
    from coterie.text.corpus import Corpus

# Rows formatted at a time.
WRITTEN_AT_A_TIME = 8_192
NAME = "cluster_name"
OWN_COLUMNS = ("row", "id", "cluster", NAME, BEST_GUESS, "confidence", "status", "text")


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse an existing target early, before any work."""
    if not path.exists():
        parent = next(parent for parent in path.absolute().parents if parent.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise InputError(f"{path} cannot be written: {parent} is not a folder one can write to")
        return
    if not overwrite:
        raise InputError(f"{path} exists already; choose another --output or add --overwrite")


def check_free_for_run(path: Path, overwrite: bool) -> None:
    """The same for a run folder; a file, or a folder that is not a run, is never replaced."""
    check_free(path, overwrite)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; --output must name a folder")
    if path.is_dir() and any(path.iterdir()) and not (path / RUN_FILE).is_file():
        raise InputError(f"{path} is a folder without {RUN_FILE}, so not a run of Coterie; it is left alone")


class AssignmentWriter:
    """Rows of ``assignments.csv``: row (from 1), id (if any), cluster, confidence, status, text, kept columns.

    Given ``names`` of the clusters, a column tells each row's (those of a fit stand in ``clusters.json`` alone, as they
    can still change). ``with_texts=False`` leaves the texts out. Texts with a confidence below ``min_confidence`` stay
    unassigned (cluster -1, status ``abstained``); where that can be, a column tells the cluster each text would be in.

    Attributes
    ----------
    abstained:
        How many rows were left unassigned so.
    """

    def __init__(
        self,
        stream: IO[str],
        corpus: Corpus,
        *,
        with_texts: bool = True,
        min_confidence: float = 0.0,
        names: Mapping[int, str] | None = None,
    ) -> None:
        self.abstained = 0
        self._least = min_confidence
        self._has_ids = corpus.id_column is not None
        self._with_texts = with_texts
        self._names = names
        self._kept = list(corpus.columns)
        there = {"id": self._has_ids, NAME: names is not None, "text": with_texts, BEST_GUESS: min_confidence > 0}
        left_out = {name for name, is_there in there.items() if not is_there}
        own = [name for name in OWN_COLUMNS if name not in left_out]
        taken = {*OWN_COLUMNS, *self._kept}
        header = list(own)
        for name in self._kept:
            renamed = name
            # A kept column may carry one of our names.
            while renamed in OWN_COLUMNS or (renamed != name and renamed in taken):
                renamed = f"{renamed}_input"
            taken.add(renamed)
            header.append(renamed)
        self._stream = stream
        self._rows = 0
        self._write([header])

    def write(self, corpus: Corpus, labels: NDArray[np.int64], confidence: NDArray[np.float64]) -> None:
        for begin in range(0, len(corpus), WRITTEN_AT_A_TIME):
            some = slice(begin, begin + WRITTEN_AT_A_TIME)
            texts, guesses = corpus.texts[some], labels[some].tolist()
            weak = (confidence[some] < self._least) & (labels[some] >= 0)
            self.abstained += int(weak.sum())
            clusters, status = guesses, corpus.status[some]
            if self._least > 0:
                clusters = [-1 if left else guess for guess, left in zip(guesses, weak, strict=True)]
                status = tuple("abstained" if left else each for each, left in zip(status, weak, strict=True))
            self._write(
                zip(
                    range(self._rows + 1, self._rows + 1 + len(texts)),
                    *([corpus.row_ids[some]] if self._has_ids else []),
                    clusters,
                    *([[self._names.get(each, "") for each in clusters]] if self._names is not None else []),
                    *([guesses] if self._least > 0 else []),
                    [f"{each:.4f}" for each in confidence[some].tolist()],
                    status,
                    *([texts] if self._with_texts else []),
                    *(corpus.columns[name][some] for name in self._kept),
                    strict=True,
                )
            )
            self._rows += len(texts)

    def _write(self, rows: Iterable[Sequence[object]]) -> None:
        records: list[str] = []
        # Records end with a line feed, but the csv module quotes a carriage return only if its own line end holds one.
        csv.writer(_Collector(records.append), lineterminator="\r\n").writerows(rows)
        self._stream.write("".join([f"{record[:-2]}\n" for record in records]))


@dataclass(frozen=True)
class _Collector:
    """A stream for the csv module: what is written goes to a function as it is, without a method in between."""

    write: Callable[[str], object]


def write_cards(folder: Path, cards: Iterable[ClusterCard], *, with_texts: bool = True) -> None:
    """``clusters.json``."""
    from coterie.files import write_json

    write_json(folder / CLUSTERS_FILE, {"clusters": [card.to_dict(with_texts=with_texts) for card in cards]})


def read_cards(folder: Path) -> list[ClusterCard]:
    """The clusters as ``clusters.json`` tells of them."""
    from coterie.describe.cards import ClusterCard

    try:
        return [ClusterCard.from_dict(told) for told in read_told_clusters(folder)]
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / CLUSTERS_FILE} does not tell of clusters as a fit does: {error!r}") from error


def update_cards(folder: Path, cards: Iterable[ClusterCard]) -> None:
    """Names, and counts by columns, into ``clusters.json``; what else it tells stays, its texts among them."""
    from coterie.describe.cards import update_card
    from coterie.files import whole_file

    by_id = {card.summary.id: card for card in cards}
    told = [update_card(each, by_id[each["id"]]) for each in read_told_clusters(folder)]
    with whole_file(folder / CLUSTERS_FILE) as stream:
        stream.write(json.dumps({"clusters": told}, indent=2, ensure_ascii=False) + "\n")


def versions(names: Iterable[str] = ("torch", "transformers", "scikit-learn", "numpy")) -> dict[str, str]:
    """Versions of Coterie, Python and the libraries a result depends on."""
    from importlib.metadata import PackageNotFoundError, version

    from coterie.version import __version__

    found = {"coterie": __version__, "python": sys.version.split()[0]}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def columns_to_keep(keep: Sequence[str], by: Sequence[str]) -> str | tuple[str, ...]:
    """``--keep`` options as :func:`~coterie.text.reading.read_corpus` takes them, with what is counted ``by``."""
    kept = listed_columns(keep)
    return kept if isinstance(kept, str) else (*kept, *by)


def names_of(values: Sequence[str]) -> tuple[str, ...]:
    """``--by`` options, each one name or several with commas between, as single names."""
    return tuple(dict.fromkeys(name.strip() for value in values for name in value.split(",") if name.strip()))


def listed_columns(values: Sequence[str]) -> str | tuple[str, ...]:
    """``--keep`` options as :func:`~coterie.text.reading.read_corpus` takes them."""
    names = names_of(values)
    return "all" if names == ("all",) else names
