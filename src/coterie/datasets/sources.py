"""Convert public files from their own formats to tables: small pure functions from bytes to a table.

White space in a text, line breaks included, becomes single spaces.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# The classes by number, from 0.
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
# Words of each Reuters story that r8_short uses: about its headline.
FIRST_WORDS = 12


@dataclass(frozen=True)
class Table:
    """Rows of strings with named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> tuple[str, ...]:
        """Return all values of one column."""
        at = self.columns.index(name)
        return tuple(row[at] for row in self.rows)


Converter = Callable[[Sequence[bytes]], Table]


def fold(text: str) -> str:
    """Return the text on one line, with single spaces and none at either end."""
    return " ".join(text.split())


def read_csv(data: bytes) -> Table:
    """Read a CSV file with a header row; no value counts as missing."""
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
    """Write a table as a CSV file with a header row."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return stream.getvalue().encode("utf-8")


def _split_lines(data: bytes, encoding: str = "utf-8") -> list[str]:
    # Not splitlines(): that would also break at characters such as U+2028, which texts may hold.
    return [line.rstrip("\r") for line in data.decode(encoding).split("\n") if line.strip()]


def _labels_and_texts(pairs: Iterable[tuple[str, str]]) -> Table:
    return Table(("label", "text"), tuple((label.strip(), fold(text)) for label, text in pairs))


def aecl_csv(files: Sequence[bytes]) -> Table:
    """Convert ``label,text0,text1``: a text and an augmented copy of it, which is left out."""
    table = read_csv(files[0])
    return _labels_and_texts(zip(table.column("label"), table.column("text0"), strict=True))


def label_tab_text(files: Sequence[bytes]) -> Table:
    """Convert ``label<TAB>text``, one per line."""
    split = (line.partition("\t") for line in _split_lines(files[0]))
    return _labels_and_texts((label, text) for label, _, text in split)


def label_tab_first_words(files: Sequence[bytes]) -> Table:
    """Convert ``label<TAB>text``, one per line, in several files; of each text, the first twelve words are used."""
    split = (line.partition("\t") for data in files for line in _split_lines(data))
    return _labels_and_texts((label, " ".join(text.split()[:FIRST_WORDS])) for label, _, text in split)


def text_and_label_lines(files: Sequence[bytes]) -> Table:
    """Convert a file of texts and one of labels, line by line."""
    texts, labels = map(_split_lines, files)
    return _labels_and_texts(zip(labels, texts, strict=True))


def dbpedia_csv(files: Sequence[bytes]) -> Table:
    """Convert ``class number,text`` without header or quotes, with tabs between sentences."""
    split = (line.partition(",") for line in _split_lines(files[0]))
    return _labels_and_texts((DBPEDIA_CLASSES[int(number)], text) for number, _, text in split)


def octis_tsv(files: Sequence[bytes]) -> Table:
    """Convert ``text<TAB>part<TAB>label``; the part (train, val, test) is left out."""
    split = (line.split("\t") for line in _split_lines(files[0]))
    return _labels_and_texts((label, text) for text, _, label in split)


def intent_lines(files: Sequence[bytes]) -> Table:
    """Convert a file of texts and one of labels, line by line, for train, valid and test in turn."""
    rows: list[tuple[str, ...]] = []
    for split, texts, labels in zip(("train", "valid", "test"), files[::2], files[1::2], strict=True):
        for text, label in zip(_split_lines(texts), _split_lines(labels), strict=True):
            rows.append((label.strip(), fold(text), split))
    return Table(("label", "text", "split"), tuple(rows))


def banking_csv(files: Sequence[bytes]) -> Table:
    """Convert ``text,category``, a file for train and one for test."""
    rows: list[tuple[str, ...]] = []
    for split, data in zip(("train", "test"), files, strict=True):
        table = read_csv(data)
        for label, text in zip(table.column("category"), table.column("text"), strict=True):
            rows.append((label, fold(text), split))
    return Table(("label", "text", "split"), tuple(rows))


def trec_zip(files: Sequence[bytes]) -> Table:
    """Convert ``COARSE:fine question`` in train.txt and test.txt of a zip archive, in Latin-1."""
    rows: list[tuple[str, ...]] = []
    with zipfile.ZipFile(io.BytesIO(files[0])) as archive:
        for split in ("train", "test"):
            member = next(name for name in archive.namelist() if name.endswith(f"/{split}.txt"))
            for line in _split_lines(archive.read(member), "latin-1"):
                fine, _, text = line.partition(" ")
                rows.append((fine.partition(":")[0], fold(text), fine, split))
    return Table(("label", "text", "fine", "split"), tuple(rows))


# The converter of each ``source_format`` of the cards.
CONVERTERS: dict[str, Converter] = {
    "aecl_csv": aecl_csv,
    "label_tab_text": label_tab_text,
    "label_tab_first_words": label_tab_first_words,
    "text_and_label_lines": text_and_label_lines,
    "dbpedia_csv": dbpedia_csv,
    "octis_tsv": octis_tsv,
    "intent_lines": intent_lines,
    "banking_csv": banking_csv,
    "trec_zip": trec_zip,
}
