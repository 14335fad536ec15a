"""Plain text and JSON lines files, and the checked lines that all line-based formats are read from."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path
from typing import IO, cast

from coterie.errors import InputError
from coterie.text.corpus import short_repr, type_name
from coterie.text.source import Batch, Column, Source, quoted_list

# Byte order marks at the start of a file.
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
# Bytes decoded at a time: 64 KiB, enough for speed, few enough for memory.
_BLOCK_BYTES = 2**16


@contextmanager
def _open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open the file's bytes, decompressed if its name ends in .gz; raise reading problems as input errors."""
    try:
        compressed = path.suffix.lower() == ".gz"
        with cast("IO[bytes]", gzip.open(path)) if compressed else path.open("rb") as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a whole gzip file ({error}): compress it again") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file with their ends, unchanged; only a line feed ends a line."""
    where = "byte {} after decompression" if path.suffix.lower() == ".gz" else "byte {}"
    offset, number = 0, 1
    with _open_bytes(path) as stream:
        for block in _read_blocks(stream):
            content = block
            if offset == 0 and block.startswith(_UTF16_BOMS):
                raise InputError(f"{path}: line 1, byte 0: this looks like UTF-16: save the file as UTF-8")
            if offset == 0 and block.startswith(_UTF8_BOM):
                content = block[len(_UTF8_BOM) :]
            start = offset + len(block) - len(content)
            lines = _decode(content)
            if lines is None:
                # Line by line, to yield the valid ones and to name the line and the byte of the invalid one.
                yield from _decode_one_by_one(content, path, number, start, where)
                raise AssertionError("a block that cannot be decoded has lines that can")
            yield from lines
            number += len(lines)
            offset += len(block)


def _read_blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of whole lines."""
    rest: list[bytes] = []
    while block := stream.read(_BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*rest, block[:end]])
            rest = []
        rest.append(block[end:])
    if last := b"".join(rest):
        yield last


def _decode(block: bytes) -> list[str] | None:
    """Return the lines of a block with their ends; ``None`` where a line is invalid."""
    if b"\0" in block:
        return None
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # Not splitlines(): it also splits at characters such as U+2028.
    return StringIO(text, newline="\n").readlines()


def _decode_one_by_one(block: bytes, path: Path, number: int, start: int, where: str) -> Iterator[str]:
    for line in BytesIO(block):
        if b"\0" in line:
            place = where.format(start + line.index(b"\0"))
            raise InputError(f"{path}: line {number}, {place}: NUL byte: is this a text file? Remove it")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            place = where.format(start + error.start)
            raise InputError(
                f"{path}: line {number}, {place}: not UTF-8 (0x{line[error.start]:02x}, {error.reason}): "
                "save the file as UTF-8 (in a spreadsheet program: save as CSV UTF-8)"
            ) from None
        number += 1
        start += len(line)


@dataclass(frozen=True)
class PlainTextSource(Source):
    """One text per line, in a column called ``text``; a blank line is an empty text."""

    path: Path

    def columns(self, requested: Collection[str] | None) -> list[Column]:
        return [Column("text", holds_text=True)]

    def batches(self, names: Sequence[str], optional: Collection[str], size: int) -> Iterator[Batch]:
        lines = read_lines(self.path)
        first = 1
        while chunk := list(islice(lines, size)):
            texts = [line.removesuffix("\n").removesuffix("\r") for line in chunk]
            yield Batch({"text": texts}, range(first, first + len(chunk)))
            first += len(chunk)


@dataclass(frozen=True)
class JsonLinesSource(Source):
    """One JSON object per line; blank lines are skipped.

    Objects may differ in their keys: the columns are all keys in the file.
    """

    path: Path

    def columns(self, requested: Collection[str] | None) -> list[Column]:
        holds_text: dict[str, bool | None] = {}
        missing = None if requested is None else set(requested)
        for _, _, row in self._rows():
            for key, value in row.items():
                if value is not None:
                    holds_text[key] = isinstance(value, str) and holds_text.get(key) is not False
                else:
                    holds_text.setdefault(key, None)
            if missing is not None:
                missing.difference_update(row)
                if not missing:
                    break
        if not holds_text:
            raise InputError(f"{self.name}: the file holds no rows: give at least one JSON object")
        return [Column(name, holds) for name, holds in holds_text.items()]

    def batches(self, names: Sequence[str], optional: Collection[str], size: int) -> Iterator[Batch]:
        rows = self._rows()
        while chunk := list(islice(rows, size)):
            cells: dict[str, list[object]] = {name: [] for name in names}
            for number, line, row in chunk:
                for name in names:
                    if name not in row and name not in optional:
                        raise InputError(
                            f"{self.name}: row {number} (line {line}) has no {name!r}, only "
                            f"{quoted_list(list(row))}: write null for an empty cell"
                        )
                    cells[name].append(row.get(name))
            yield Batch(cells, [line for _, line, _ in chunk])

    def _rows(self) -> Iterator[tuple[int, int, dict[str, object]]]:
        """Yield row number, line number and object, in order."""
        number = 0
        for line, content in enumerate(read_lines(self.path), start=1):
            if content.isspace():
                continue
            number += 1
            row = _parse_fast(content)
            yield number, line, self._parse_checked(content, number, line) if row is None else row

    def _parse_checked(self, content: str, number: int, line: int) -> dict[str, object]:
        where = f"{self.name}: row {number} (line {line})"
        try:
            row = json.loads(content)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{where}: broken JSON at character {error.colno}: {error.msg}: correct the line"
            ) from None
        except (ValueError, RecursionError) as error:  # a number or a nesting beyond Python's limits
            raise InputError(f"{where}: JSON that cannot be read: {error}") from None
        if not isinstance(row, dict):
            raise InputError(
                f"{where}: expected a JSON object, received {type_name(row)} {short_repr(row)}: write "
                'one object per line, {"text": "..."}'
            )
        return row


_decoder = json.JSONDecoder()


def _parse_fast(content: str) -> dict[str, object] | None:
    """Return the object of a line that holds nothing else; ``None`` where the slower parser must decide."""
    if not content.startswith("{"):
        return None
    try:
        row, end = _decoder.raw_decode(content)
    except (ValueError, RecursionError):
        return None
    return row if content[end:] in ("", "\n", "\r\n") else None
