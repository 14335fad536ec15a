"""The report as somebody opens it: in a real browser, from disk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from chromium import Page, chromium
from made_run import NASTY

from coterie.api.reporting import write_report
from coterie.cli.report import labels_of
from coterie.report.html.content import pack
from coterie.report.html.rendering import script_json
from coterie.runs.saved_run import SavedRun

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium here: see make test-browser")


@pytest.fixture(scope="module")
def page(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with Page(tmp_path_factory.mktemp("profile")) as opened:
        opened.open((run_folder / "report.html").as_uri())
        yield opened


def _shown(page: Page) -> int:
    """How many points are drawn strongly."""
    return int(page.evaluate("map.shown ? map.shown.reduce((a, b) => a + b, 0) : map.count"))


def test_it_opens_without_an_error_and_shows_texts_as_texts(page: Page) -> None:
    assert page.errors == []
    assert page.text("h1") == "texts.csv"
    assert page.evaluate("document.querySelectorAll('#clusters li').length") == 4
    assert page.evaluate("document.querySelectorAll('.card').length") == 4
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    drawn = "map.context.getImageData(0, 0, map.canvas.width, map.canvas.height).data.some((value) => value > 0)"
    page.wait(drawn)


def test_searching_choosing_and_clearing(page: Page) -> None:
    page.click("#search")
    page.type("<SCRIPT>")
    assert _shown(page) == 1
    assert page.text("#found") == "1 of 63 texts"
    page.click("#clear")
    assert _shown(page) == 63
    page.click("#clusters li:nth-child(2) button")
    sizes = page.evaluate("Array.from(main.cluster).filter((cluster) => cluster === 1).length")
    assert _shown(page) == sizes
    assert page.evaluate("document.querySelectorAll('#clusters [aria-pressed=true]').length") == 1
    page.click("#clusters li:nth-child(2) button")
    assert _shown(page) == 63


def test_pointing_at_a_text_shows_it(page: Page) -> None:
    assert _shown(page) == 63
    number = page.evaluate(f"points.texts.indexOf({json.dumps(NASTY)})")
    page.place("#points")
    x, y = page.evaluate(
        f"(() => {{ const b = map.canvas.getBoundingClientRect(); map.draw(); "
        f"return [b.left + map.left({number}) / map.ratio, b.top + map.top({number}) / map.ratio]; }})()"
    )
    page.move_to(x, y)
    page.wait("!document.getElementById('tip').hidden")
    output = page.text("#tip")
    assert output.strip()
    # Another text may be at the same place on the map; the tooltip shows one of those near it, unchanged.
    assert any(text in output for text in page.evaluate("points.texts"))
    page.click_at(x, y)
    assert 0 < _shown(page) < 63
    page.click("#clear")


def test_keys_move_and_zoom(page: Page) -> None:
    page.evaluate("document.getElementById('points').focus()")
    page.press("+")
    assert page.evaluate("map.scale") > 1.2
    page.press("0")
    assert page.evaluate("map.scale") == 1


def test_on_paper_it_is_light_and_unfolded(page: Page) -> None:
    closed = "document.querySelectorAll('details:not([open])').length"
    folded = page.evaluate(closed)
    assert folded > 0
    page.evaluate("document.documentElement.dataset.theme = 'dark'; dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate(closed) == 0
    first = "document.querySelector('#clusters .swatch').style.background === css(0)"
    assert page.evaluate(first)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(closed) == folded
    assert page.evaluate(first)
    page.evaluate("delete document.documentElement.dataset.theme")
    assert page.errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_cluster_has_a_clear_contrast(page: Page, theme: str) -> None:
    """By 3 to 1, as WCAG asks of what is no text."""
    lowest = page.evaluate(
        f"(() => {{ document.documentElement.dataset.theme = '{theme}';"
        "const numbers = (text) => text.match(/[0-9]+/g).map(Number);"
        "const paper = luminance(numbers(getComputedStyle(document.body).backgroundColor));"
        "const ratios = Array.from({ length: 200 }, (_, id) => luminance(colour(id)))"
        ".map((own) => (Math.max(own, paper) + 0.05) / (Math.min(own, paper) + 0.05));"
        "delete document.documentElement.dataset.theme; return Math.min(...ratios); })()"
    )
    assert lowest >= 3


def test_dark_and_light(page: Page) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    dark = page.evaluate(paper)
    page.click("#theme")
    assert page.evaluate(paper) == light != dark


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out(page: Page, width: int) -> None:
    page.resize(width, 900)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.resize(1280, 900)


def test_a_hundred_thousand_points_stay_smooth(page: Page, run_folder: Path, tmp_path: Path) -> None:
    """The median frame while the map is moved takes less than 50 ms."""
    html = (run_folder / "report.html").read_text(encoding="utf-8")
    begin = html.index('id="data">') + len('id="data">')
    end = html.index("</script>", begin)
    content = json.loads(html[begin:end])
    n, generator = 100_000, np.random.default_rng(0)
    places = np.clip(generator.normal(scale=9_000, size=(2, n)), -32_000, 32_000)
    content["points"] |= {
        "count": n,
        "x": pack(places[0], np.int16),
        "y": pack(places[1], np.int16),
        "cluster": pack(generator.integers(4, size=n), np.int32),
        "runner_up": pack(generator.integers(4, size=n), np.int32),
        "confidence": pack(generator.integers(255, size=n), np.uint8),
        "texts": [f"text {i}" for i in range(n)],
    }
    (tmp_path / "many.html").write_text(html[:begin] + script_json(content) + html[end:], encoding="utf-8")
    page.open((tmp_path / "many.html").as_uri())
    frames = page.evaluate(
        "(async () => { const times = []; for (let i = 0; i < 25; i++) { map.dx += 3; const began = performance.now(); "
        "map.draw(); map.at(200, 200); times.push(performance.now() - began); "
        "await new Promise((done) => requestAnimationFrame(done)); } return times.sort((a, b) => a - b)[12]; })()"
    )
    assert frames < 50


@pytest.fixture(scope="module")
def labelled(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the same run with its labels."""
    path = tmp_path_factory.mktemp("labelled") / "report.html"
    labels = labels_of(run_folder, run_folder.parent / "texts.csv", "label", None)
    write_report(SavedRun.open(run_folder, device="cpu"), path, labels, map="pca")
    return path


def test_the_map_is_coloured_by_cluster_or_by_label(page: Page, labelled: Path) -> None:
    assert page.evaluate("document.getElementById('colour-by').hidden")
    assert page.evaluate("document.getElementById('colour-by').getBoundingClientRect().height") == 0
    page.open(labelled.as_uri())
    assert not page.evaluate("document.getElementById('colour-by').hidden")
    output = [page.evaluate(f"document.querySelectorAll('.main-label')[{at}].innerText") for at in range(4)]
    assert all(re.fullmatch(r"Most frequent label: (parcel|password|refund|odd) \(\d+ %\)", each) for each in output)
    colours = "JSON.stringify([...map.context.getImageData(0, 0, map.canvas.width, map.canvas.height).data])"
    page.evaluate("map.labels = false, map.draw()")
    by_cluster = page.evaluate(colours)
    # With the keyboard alone.
    page.evaluate("document.querySelector('#colour-by input').focus()")
    page.press("ArrowRight")
    assert page.evaluate("map.coloring !== null && coloring === byLabel")
    page.evaluate("map.draw()")
    assert page.evaluate(colours) != by_cluster
    names = page.evaluate(
        "[...document.querySelectorAll('#clusters li span:nth-child(2)')].map((each) => each.innerText)"
    )
    assert sorted(names) == ["odd", "parcel", "password", "refund"]
    page.click("#clusters li:nth-child(1) button")
    assert _shown(page) == page.evaluate("data.labels[0].size") == 20
    page.evaluate("document.querySelector('#colour-by input:checked').focus()")
    page.press("ArrowLeft")
    assert page.evaluate("map.coloring === null && chosen === null")
    assert _shown(page) == 63 and page.errors == []
    page.evaluate("map.draw()")
    assert page.evaluate(colours) == by_cluster


def test_names_of_stages_do_not_stand_on_each_other(page: Page) -> None:
    overlaps = page.evaluate(
        "(() => { const marks = [0, 2, 5, 60, 99].map((at) => ({ at, name: `denoising ${at}` }));"
        "const made = lineChart('loss', [{ points: [[0, 1], [100, 0]] }], { marks }); document.body.append(made);"
        "const boxes = [...made.querySelectorAll('.mark')].map((each) => each.getBBox());"
        "const frame = made.querySelector('svg').viewBox.baseVal; made.remove();"
        "return [boxes.length, boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.x < b.x + b.width && "
        "b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height)).length,"
        "boxes.filter((a) => a.x < 0 || a.x + a.width > frame.width).length]; })()"
    )
    assert overlaps == [5, 0, 0]


def test_heads_of_tables_are_not_broken_on_a_phone(page: Page, run_folder: Path) -> None:
    page.open((run_folder / "report.html").as_uri())
    page.resize(390, 844)
    lines = page.evaluate(
        "[...document.querySelectorAll('#trained th:not(:first-child), #trained td:not(:first-child)')].map((each) => "
        "{ const text = document.createRange(); text.selectNodeContents(each); return text.getClientRects().length; })"
    )
    assert len(lines) >= 4 and set(lines) == {1}
    page.resize(1280, 900)


def test_no_mark_of_a_card_is_more_than_all(page: Page) -> None:
    output = page.evaluate(
        "[...cardOf({ ...listed[0], separation: 2 }).querySelectorAll('.measures b')].map((each) => each.textContent)"
    )
    assert "100 %" in output and "200 %" not in output
