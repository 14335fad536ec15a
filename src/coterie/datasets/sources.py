"""From each public file's own format to rows: small pure functions, bytes in, a table out.

White space inside a text, line breaks included, is folded to single spaces.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

DBPEDIA_CLASSES = (
    "Company",
    "EducationalInstitution",
    "Artist",
    "Athlete",
    "OfficeHolder",
    "MeanOfTransportation",
    "Building",
    "NaturalPlace",
    "Village",
    "Animal",
    "Plant",
    "Album",
    "Film",
    "WrittenWork",
)


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> tuple[str, ...]:
        """All values of one column."""
        at = self.columns.index(name)
        return tuple(row[at] for row in self.rows)


Converter = Callable[[Sequence[bytes]], Table]


def fold(text: str) -> str:
    """One line, single spaces, no space at either end."""
    return " ".join(text.split())


def read_csv(data: bytes) -> Table:
    """A CSV file with a header row; nothing is taken for a missing value."""
    rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    try:
        header = tuple(next(rows, ()))
        table = tuple(tuple(row) for row in rows if row)
    except csv.Error as error:  # not a ValueError by itself
        raise ValueError(f"line {rows.line_num}: {error}") from error
    for number, row in enumerate(table, start=1):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} fields, the header has {len(header)}")
    return Table(header, table)


def write_csv(table: Table) -> bytes:
    """The same, the other way round."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return stream.getvalue().encode("utf-8")


def _lines(data: bytes, encoding: str = "utf-8") -> list[str]:
    # Not splitlines(): that would also break at characters such as U+2028, which texts may hold.
    return [line.rstrip("\r") for line in data.decode(encoding).split("\n") if line.strip()]


def _labelled(pairs: Iterable[tuple[str, str]]) -> Table:
    return Table(("label", "text"), tuple((label.strip(), fold(text)) for label, text in pairs))


def aecl_csv(files: Sequence[bytes]) -> Table:
    """``label,text0,text1``: the text and an augmented copy of it, which is left out."""
    table = read_csv(files[0])
    return _labelled(zip(table.column("label"), table.column("text0"), strict=True))


def label_tab_text(files: Sequence[bytes]) -> Table:
    """``label<TAB>text``, one a line."""
    split = (line.partition("\t") for line in _lines(files[0]))
    return _labelled((label, text) for label, _, text in split)


def dbpedia_csv(files: Sequence[bytes]) -> Table:
    """``class number,text`` without header or quotes, the sentences parted by tabs."""
    split = (line.partition(",") for line in _lines(files[0]))
    return _labelled((DBPEDIA_CLASSES[int(number)], text) for number, _, text in split)


def octis_tsv(files: Sequence[bytes]) -> Table:
    """``text<TAB>part<TAB>label``; the part (train, val, test) is not kept."""
    split = (line.split("\t") for line in _lines(files[0]))
    return _labelled((label, text) for text, _, label in split)


def intent_lines(files: Sequence[bytes]) -> Table:
    """For train, valid and test in turn: a file of texts and a file of labels, line by line."""
    rows: list[tuple[str, ...]] = []
    for split, texts, labels in zip(("train", "valid", "test"), files[::2], files[1::2], strict=True):
        for text, label in zip(_lines(texts), _lines(labels), strict=True):
            rows.append((label.strip(), fold(text), split))
    return Table(("label", "text", "split"), tuple(rows))


def banking_csv(files: Sequence[bytes]) -> Table:
    """``text,category``, a file for train and one for test."""
    rows: list[tuple[str, ...]] = []
    for split, data in zip(("train", "test"), files, strict=True):
        table = read_csv(data)
        for label, text in zip(table.column("category"), table.column("text"), strict=True):
            rows.append((label, fold(text), split))
    return Table(("label", "text", "split"), tuple(rows))


def trec_zip(files: Sequence[bytes]) -> Table:
    """``COARSE:fine question`` in train.txt and test.txt of a zip archive, in Latin-1."""
    rows: list[tuple[str, ...]] = []
    with zipfile.ZipFile(io.BytesIO(files[0])) as archive:
        for split in ("train", "test"):
            member = next(name for name in archive.namelist() if name.endswith(f"/{split}.txt"))
            for line in _lines(archive.read(member), "latin-1"):
                fine, _, text = line.partition(" ")
                rows.append((fine.partition(":")[0], fold(text), fine, split))
    return Table(("label", "text", "fine", "split"), tuple(rows))


CONVERTERS: dict[str, Converter] = {
    "aecl_csv": aecl_csv,
    "label_tab_text": label_tab_text,
    "dbpedia_csv": dbpedia_csv,
    "octis_tsv": octis_tsv,
    "intent_lines": intent_lines,
    "banking_csv": banking_csv,
    "trec_zip": trec_zip,
}
