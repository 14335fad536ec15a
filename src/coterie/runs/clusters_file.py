"""``clusters.json``: the clusters as the fit described them, one card per cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from coterie.describe.cards import ClusterCard, update_card
from coterie.errors import InputError
from coterie.files import atomic_file, write_json

CLUSTERS_FILE = "clusters.json"


def write_cards(folder: Path, cards: Iterable[ClusterCard], *, with_texts: bool = True) -> None:
    """Write ``clusters.json``; without texts, keywords and names stay."""
    write_json(folder / CLUSTERS_FILE, {"clusters": [card.to_dict(with_texts=with_texts) for card in cards]})


def read_card_dicts(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of ``clusters.json`` as plain dictionaries."""
    try:
        entries = json.loads((folder / CLUSTERS_FILE).read_text(encoding="utf-8"))["clusters"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / CLUSTERS_FILE} cannot be read: {error}") from error
    return list(entries)


def read_cards(folder: Path) -> list[ClusterCard]:
    """Return the clusters of ``clusters.json``, as the fit left them."""
    try:
        return [ClusterCard.from_dict(entry) for entry in read_card_dicts(folder)]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / CLUSTERS_FILE} does not describe clusters as a fit does: {error!r}") from error


def update_cards(folder: Path, cards: Iterable[ClusterCard]) -> None:
    """Replace names and counts by columns in ``clusters.json``; all else there stays, its texts among it."""
    by_id = {card.summary.id: card for card in cards}
    entries = [update_card(entry, by_id[entry["id"]]) for entry in read_card_dicts(folder)]
    with atomic_file(folder / CLUSTERS_FILE) as stream:
        stream.write(json.dumps({"clusters": entries}, indent=2, ensure_ascii=False) + "\n")
