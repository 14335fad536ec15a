"""Update the names and counts in a report that was made before."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.describe.breakdown import Breakdown
from coterie.describe.cards import ClusterCard, update_card
from coterie.errors import InputError
from coterie.report.html.content import add_breakdowns
from coterie.report.html.headline import build_headline
from coterie.report.html.rendering import read_content, render_page
from coterie.version import __version__


def update_page(page: str, cards: Sequence[ClusterCard], by: Sequence[Breakdown]) -> str:
    """Return the page with the names and counts of these cards; everything else stays.

    For runs without stored texts, whose report cannot be made a second time.
    """
    content = read_content(page)
    if content is None or content["about"]["version"] != __version__:
        raise InputError(
            "another version of Coterie made the report of this run, and the run holds no texts to make a new one "
            "from: fit again"
        )
    cards_by_id = {card.summary.id: card for card in cards}
    content.setdefault("by", {})
    content["clusters"] = [update_card(stored, cards_by_id[stored["id"]]) for stored in content["clusters"]]
    add_breakdowns(content, by)
    content["headline"] = build_headline(content)
    return render_page(content)
