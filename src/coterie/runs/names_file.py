"""``names.json``: names of clusters that a language model gave, kept so that none is asked for twice."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from coterie.describe.language_model_names import clean_name
from coterie.files import atomic_file

NAMES_FILE = "names.json"


@dataclass
class KnownNames:
    """The content of ``names.json``: neither texts nor keys of a service.

    Attributes
    ----------
    clusters:
        The name of each cluster that has one, by id, the first named first.
    answers:
        Every name that was given, by the digest of model and question: it is not paid for twice.
    unreadable:
        Whether ``names.json`` exists but was not written by Coterie.
    """

    clusters: dict[int, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    unreadable: bool = False

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the names of a run folder; none where no model was asked."""
        try:
            content = json.loads((folder / NAMES_FILE).read_text(encoding="utf-8"))
            clusters = {int(k): _checked(name) for k, name in content["clusters"].items()}
            return cls(clusters, {digest: _checked(name) for digest, name in content["answers"].items()})
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(unreadable=True)

    def write(self, folder: Path) -> None:
        """Write ``names.json``, whole or not at all."""
        content = {"clusters": {str(k): name for k, name in self.clusters.items()}, "answers": self.answers}
        with atomic_file(folder / NAMES_FILE) as stream:
            stream.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _checked(name: Any) -> str:
    cleaned = clean_name(name)
    if cleaned is None:
        raise ValueError("not a name")
    return cleaned
