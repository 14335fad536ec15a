"""A report made already, with other names of its clusters and counts by other columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie import __version__
from coterie.errors import InputError
from coterie.report.breakdown import Breakdown
from coterie.report.cards import ClusterCard
from coterie.report.data import headline, tell_breakdowns
from coterie.report.rendering import content_of, render_content


def retell(page: str, cards: Sequence[ClusterCard], by: Sequence[Breakdown]) -> str:
    """The same page with what these cards say of names and columns; all else stays.

    For runs that hold no texts: their report cannot be made a second time.
    """
    content = content_of(page)
    if content is None or content["about"]["version"] != __version__:
        raise InputError(
            "the report of this run was made by another version of Coterie, and it holds no texts: fit again"
        )
    cards_by_id = {card.summary.id: card for card in cards}
    content.setdefault("by", {})
    content["clusters"] = [told_anew(each, cards_by_id[each["id"]]) for each in content["clusters"]]
    tell_breakdowns(content, by)
    content["headline"] = headline(content)
    return render_content(content)


def told_anew(told: Mapping[str, Any], card: ClusterCard) -> dict[str, Any]:
    """A cluster as it was told, with what this card says of its name and, where it does, of columns."""
    rest = {key: value for key, value in told.items() if key not in {"id", "name", "keyword_name"}}
    names = {"name": card.name} if card.keyword_name is None else {"name": card.name, "keyword_name": card.keyword_name}
    return {"id": told["id"], **names, **rest, **({"by": dict(card.by)} if card.by else {})}
