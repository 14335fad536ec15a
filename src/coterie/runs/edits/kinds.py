"""One edit, as a line of ``edits.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from coterie.errors import InputError

Kind = Literal["rename", "merge", "split", "move"]
KINDS: tuple[str, ...] = get_args(Kind)
# Kinds that put texts into an existing cluster.
WITH_TARGET = ("merge", "move")
# The cluster id of texts that are in no cluster.
NOISE = -1


@dataclass(frozen=True)
class Part:
    """One of the clusters that a cluster was split into.

    Attributes
    ----------
    cluster:
        Its id.
    name, keywords:
        As it was named and described by the split.
    rows:
        The run's rows in it.
    center:
        The mean vector of its texts: a new text goes to the part whose centre is nearest.
    """

    cluster: int
    name: str
    keywords: list[str]
    rows: list[int]
    center: list[float]


@dataclass(frozen=True)
class Edit:
    """A change that a person made to the clusters of a run.

    Attributes
    ----------
    kind:
        ``rename`` a cluster, ``merge`` some into one, ``split`` one into parts, ``move`` rows elsewhere.
    clusters:
        The renamed or split cluster, or those that were merged into ``to``.
    to:
        The target of merged clusters and moved rows; -1: in no cluster.
    name:
        The new name.
    rows, texts:
        The rows that were moved, and their distinct texts: a new row with such a text moves too.
    parts:
        The clusters that one was split into.
    at:
        The time of the edit, in ISO form.
    """

    kind: Kind
    clusters: list[int] = field(default_factory=list)
    to: int = NOISE
    name: str | None = None
    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    at: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the edit as it is written: without empty fields."""
        content = {name: value for name, value in asdict(self).items() if value not in ([], None, "")}
        return content if self.kind in WITH_TARGET else {key: value for key, value in content.items() if key != "to"}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Edit:
        """Read what :meth:`to_dict` returned."""
        kind = content.get("kind")
        if kind not in KINDS:
            raise InputError(f"{kind!r} is no kind of edit; there are {', '.join(KINDS)}, undo and redo")
        try:
            return cls(
                kind=kind,
                clusters=[int(each) for each in content.get("clusters", [])],
                to=int(content["to"]) if kind in WITH_TARGET else NOISE,
                name=None if content.get("name") is None else str(content["name"]),
                rows=[int(each) for each in content.get("rows", [])],
                texts=[str(each) for each in content.get("texts", [])],
                parts=[
                    Part(
                        int(each["cluster"]),
                        str(each["name"]),
                        [str(word) for word in each["keywords"]],
                        [int(row) for row in each["rows"]],
                        [float(value) for value in each["center"]],
                    )
                    for each in content.get("parts", [])
                ],
                at=str(content.get("at", "")),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"an edit of kind {kind!r} that cannot be read: {error}") from error
