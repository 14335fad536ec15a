"""Send and receive messages between the training process and its view workers: a line of JSON, then raw arrays.

This module imports nothing heavy, so that a worker starts in a fraction of a second.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import reduce
from itertools import accumulate, pairwise
from typing import IO, Any

import numpy as np

from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.composition import Composition

Buffer = bytes | bytearray


def send(stream: IO[bytes], header: Mapping[str, Any], *parts: Buffer) -> None:
    """Write one message."""
    sizes = [len(part) for part in parts]
    stream.write(json.dumps({**header, "sizes": sizes}).encode("ascii") + b"\n")
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[bytearray]]:
    """Read one message; raise EOFError where the other process has ended."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the other process has ended")
    header = json.loads(line)
    parts = []
    for size in header.pop("sizes"):
        part = bytearray(size)
        if stream.readinto(part) != size:  # type: ignore[attr-defined]
            raise EOFError("the other process has ended")
        parts.append(part)
    return header, parts


def pack_texts(texts: Sequence[str]) -> tuple[bytes, bytes]:
    """Return all texts as one encoded string, and the number of characters of each."""
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    return "".join(texts).encode("utf-8", "surrogatepass"), lengths.tobytes()


def unpack_texts(whole: Buffer, lengths: Buffer) -> list[str]:
    """Return the texts that :func:`pack_texts` encoded."""
    characters = bytes(whole).decode("utf-8", "surrogatepass")
    ends = accumulate(np.frombuffer(lengths, dtype=np.int64).tolist(), initial=0)
    return [characters[begin:end] for begin, end in pairwise(ends)]


def describe_augmenter(augmenter: Augmenter) -> dict[str, Any] | None:
    """Return the augmenter as data for :func:`rebuild_augmenter` in another process; ``None`` if impossible."""
    if type(augmenter) is Composition:
        parts = [describe_augmenter(part) for part in augmenter.augmenters]
        return None if None in parts else {"parts": parts}
    kind = type(augmenter)
    settings = {field.name: getattr(augmenter, field.name) for field in fields(augmenter)}
    description = {"module": kind.__module__, "name": kind.__qualname__, "settings": settings}
    try:
        # Another attribute, or a class that only this process has, would be lost.
        whole = kind.__module__ != "__main__" and vars(augmenter) == settings
        again = rebuild_augmenter(json.loads(json.dumps(description))) if whole else None
        return description if again == augmenter else None
    except Exception:  # a class from outside may raise anything when it is constructed
        return None


def rebuild_augmenter(description: Mapping[str, Any]) -> Augmenter:
    """Return the augmenter that :func:`describe_augmenter` described."""
    if "parts" in description:
        return Composition(*(rebuild_augmenter(part) for part in description["parts"]))
    module = sys.modules.get(description["module"]) or importlib.import_module(description["module"])
    kind = reduce(getattr, description["name"].split("."), module)
    settings = {name: _with_tuples(value) for name, value in description["settings"].items()}
    augmenter: Augmenter = kind(**settings)  # type: ignore[operator]
    return augmenter


def _with_tuples(value: Any) -> Any:
    """Return lists as tuples, the form that frozen dataclasses hold."""
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
