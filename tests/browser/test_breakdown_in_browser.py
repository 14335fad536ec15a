"""Counts by columns and given names in the report, as somebody sees them: in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import Page, chromium
from conftest import topic_texts

from coterie.cli.fit import fit
from coterie.runs.names_file import KnownNames

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium here: see make test-browser")

MARKUP = "<img src=x onerror=document.body.remove()> " + "W" * 36


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    from coterie.cli.report import report

    folder = tmp_path_factory.mktemp("counted")
    texts, _ = topic_texts(40)
    countries = [MARKUP, "FR", ""]
    rows = [f"{text},{countries[i % 3]},2024-0{1 + i % 6}-1{i % 9}" for i, text in enumerate(texts)]
    (folder / "in.csv").write_text("\n".join(["text,country,<b>day</b>", *rows]), encoding="utf-8")
    options = {"clusters": 3, "method": "tfidf", "text_column": "text", "quiet": True}
    fit(folder / "in.csv", by=["country", "<b>day</b>"], output=folder / "run", **options)  # type: ignore[arg-type]
    KnownNames({0: "<i>Given</i>"}).write(folder / "run")
    report(folder / "run")
    with Page(tmp_path_factory.mktemp("profile")) as opened:
        opened.open((folder / "run" / "report.html").as_uri())
        yield opened


def test_values_and_dates_are_drawn_as_texts(page: Page) -> None:
    assert page.errors == []
    assert page.evaluate("document.querySelectorAll('.card').length") == 3
    assert page.evaluate("document.querySelectorAll('.card .by').length") == 6
    assert page.evaluate("document.querySelectorAll('.by img, .by b, .card i').length") == 0
    values = "[...document.querySelectorAll('.card .by .value')].map((each) => each.textContent)"
    assert set(page.evaluate(values)) == {MARKUP, "FR"}
    assert page.evaluate("document.querySelector('.card h3').textContent") == "<i>Given</i>"
    titles = page.evaluate("[...document.querySelectorAll('.by h4')].map((each) => each.textContent)")
    assert titles == ["country", "<b>day</b>"] * 3


def test_bars_are_as_long_as_their_counts(page: Page) -> None:
    content = page.evaluate(
        "clusters.map((card) => card.by.country.values.map((each) => each.share / "
        "Math.max(0.1, ...card.by.country.values.flatMap((other) => [other.share, other.overall]))))"
    )
    drawn = page.evaluate(
        "[...document.querySelectorAll('.card')].map((card) => [...card.querySelectorAll('.track')].map((track) => "
        "track.firstChild.getBoundingClientRect().width / track.getBoundingClientRect().width))"
    )
    assert drawn == [pytest.approx(shares, abs=0.01) for shares in content]
    # A bar a bin, higher for more rows.
    heights = page.evaluate(
        "[...document.querySelectorAll('.by svg')].map((svg) => [...svg.querySelectorAll('rect.fill')]"
        ".map((bar) => Number(bar.getAttribute('height'))))"
    )
    rows = page.evaluate(
        "clusters.map((card) => Object.keys(data.by['<b>day</b>'].dates)"
        ".map((start) => card.by['<b>day</b>'].dates[start] ?? 0))"
    )
    for bars, counts in zip(heights, rows, strict=True):
        assert len(bars) == len(counts) > 1
        assert bars == pytest.approx([count * max(bars) / max(counts) for count in counts], abs=0.1)


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_of_a_card(page: Page, width: int) -> None:
    page.resize(width, 900)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = (
        "[...document.querySelectorAll('.by *')].filter((each) => each.getBoundingClientRect().right > "
        "each.closest('.card').getBoundingClientRect().right + 1).length"
    )
    assert page.evaluate(outside) == 0
    page.resize(1280, 900)


def test_bars_follow_the_theme(page: Page) -> None:
    color = "getComputedStyle(document.querySelector('.by .fill')).backgroundColor"
    light = page.evaluate(color)
    page.click("#theme")
    dark = page.evaluate(color)
    page.click("#theme")
    assert page.evaluate(color) == light != dark
