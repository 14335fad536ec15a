"""One edit as it stands in a line of ``edits.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from coterie.errors import InputError

Kind = Literal["rename", "merge", "split", "move"]
KINDS: tuple[str, ...] = get_args(Kind)
# Those that put texts into a cluster that is there.
SOMEWHERE = ("merge", "move")
# The cluster of texts that belong to none.
NOISE = -1


@dataclass(frozen=True)
class Part:
    """One of the clusters that another one was split into.

    Attributes
    ----------
    cluster:
        Its id.
    name, keywords:
        As it was called and described when it was made.
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
    """What a person did.

    Attributes
    ----------
    kind:
        ``rename`` a cluster, ``merge`` some into one, ``split`` one into parts, ``move`` rows elsewhere.
    clusters:
        The clusters it is about: the renamed or split one, or those that were merged into ``to``.
    to:
        Where merged clusters and moved rows went; -1 is for texts that belong nowhere.
    name:
        The new name.
    rows, texts:
        The rows that were moved, and their distinct texts, which hold for new rows too.
    parts:
        What a cluster was split into.
    at:
        When, in ISO form.
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
        """As it is written: without what it does not hold."""
        told = {name: value for name, value in asdict(self).items() if value not in ([], None, "")}
        return told if self.kind in SOMEWHERE else {name: value for name, value in told.items() if name != "to"}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Edit:
        kind = told.get("kind")
        if kind not in KINDS:
            raise InputError(f"{kind!r} is no kind of edit; there are {', '.join(KINDS)}, undo and redo")
        try:
            return cls(
                kind=kind,
                clusters=[int(each) for each in told.get("clusters", [])],
                to=int(told["to"]) if kind in SOMEWHERE else NOISE,
                name=None if told.get("name") is None else str(told["name"]),
                rows=[int(each) for each in told.get("rows", [])],
                texts=[str(each) for each in told.get("texts", [])],
                parts=[
                    Part(
                        int(each["cluster"]),
                        str(each["name"]),
                        [str(word) for word in each["keywords"]],
                        [int(row) for row in each["rows"]],
                        [float(value) for value in each["center"]],
                    )
                    for each in told.get("parts", [])
                ],
                at=str(told.get("at", "")),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"an edit of kind {kind!r} that cannot be read: {error}") from error
