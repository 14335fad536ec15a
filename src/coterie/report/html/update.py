"""A report made already, with other names of its clusters and counts by other columns."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.describe.breakdown import Breakdown
from coterie.describe.cards import ClusterCard, updated_card
from coterie.errors import InputError
from coterie.report.html.content import headline, tell_breakdowns
from coterie.report.html.rendering import content_of, render_content
from coterie.version import __version__


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
    content["clusters"] = [updated_card(each, cards_by_id[each["id"]]) for each in content["clusters"]]
    tell_breakdowns(content, by)
    content["headline"] = headline(content)
    return render_content(content)
