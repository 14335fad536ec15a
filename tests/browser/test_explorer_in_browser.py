"""The explorer as somebody uses it: in a real browser, by clicking through."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Page, chromium
from made_run import NASTY
from served import Served

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium here: see make test-browser")


@pytest.fixture
def run(run_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


@pytest.fixture
def page(run: Path, tmp_path: Path) -> Iterator[Page]:
    with Served(run) as served, Page(tmp_path / "profile") as opened:
        opened.open(served.address)
        yield opened


def _names(page: Page) -> list[str]:
    return list(page.evaluate("listed.map((each) => each.name)"))


def _choose(page: Page, selector: str, value: str) -> None:
    """One of a list, as the keyboard would, and then the button beside it: the list alone changes nothing."""
    before = _names(page)
    page.evaluate(
        f"(() => {{ const list = document.querySelector({json.dumps(selector)}); list.value = {json.dumps(value)}; "
        "list.dispatchEvent(new Event('change')); })()"
    )
    assert _names(page) == before and not page.evaluate("document.body.hasAttribute('aria-busy')")
    page.click(f"{selector}-form button")


def _settled(page: Page) -> None:
    page.wait("!document.body.hasAttribute('aria-busy')")


def _lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "edits.jsonl").read_text(encoding="utf-8").splitlines()]


def test_open_search_and_read(page: Page) -> None:
    assert page.errors == []
    assert page.text("h1") == "texts.csv"
    assert page.evaluate("document.querySelectorAll('#groups li').length") == 4
    assert page.evaluate("document.getElementById('selection').hidden")
    page.wait("map.context.getImageData(0, 0, map.canvas.width, map.canvas.height).data.some((value) => value > 0)")
    page.click("#search")
    page.type("<SCRIPT>")
    page.wait("document.querySelectorAll('#texts li').length === 1")
    assert page.text("#texts .words-of") == NASTY
    assert page.text("#found") == "1 of 63 different texts"
    assert page.evaluate("map.shown.reduce((a, b) => a + b, 0)") == 1
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.errors == []


def test_rename_merge_undo_redo(page: Page, run: Path) -> None:
    first, second = _names(page)[:2]
    page.click("#groups li:nth-child(1) button")
    page.wait("!document.getElementById('group-side').hidden")
    page.evaluate("document.getElementById('name').select()")
    page.click("#name")
    page.evaluate("document.getElementById('name').select()")
    page.type("Late <b>parcels</b>")
    page.click("#rename button")
    page.wait("listed.some((each) => each.name === 'Late <b>parcels</b>')")
    _settled(page)
    assert page.evaluate("document.getElementById('name').value") == "Late <b>parcels</b>"

    target = page.evaluate(f"String(listed.find((each) => each.name === {json.dumps(second)}).id)")
    _choose(page, "#merge", target)
    page.wait("listed.length === 3")
    _settled(page)
    assert _names(page).count(second) == 1
    page.click("#undo")
    page.wait("listed.length === 4")
    _settled(page)
    page.click("#redo")
    page.wait("listed.length === 3")
    _settled(page)
    page.click("#undo")
    page.wait("listed.length === 4")
    _settled(page)
    page.click("#undo")
    page.wait(f"listed.some((each) => each.name === {json.dumps(first)})")
    _settled(page)
    assert [line["kind"] for line in _lines(run)] == ["rename", "merge", "undo", "redo", "undo", "undo"]
    assert page.errors == []


def test_split_and_move(page: Page, run: Path) -> None:
    page.click("#groups li:nth-child(1) button")
    page.wait("!document.getElementById('group-side').hidden")
    _settled(page)
    _choose(page, "#split", "2")
    page.wait("listed.length === 5")
    _settled(page)
    page.click("#groups li:nth-child(1) button")
    page.wait("!document.getElementById('group-side').hidden")
    _settled(page)
    text = page.text("#texts li:nth-child(1) .words-of")
    page.click("#texts li:nth-child(1) input")
    assert page.text("#selected") == "1 chosen"
    _choose(page, "#move", "-1")
    page.wait("run.noise === 1")
    _settled(page)
    assert _lines(run)[-1]["texts"] == [text]
    page.click("#back")
    page.click("#groups li:last-child button")
    page.wait(f"document.querySelector('#texts .words-of')?.innerText === {json.dumps(text)}")
    assert page.errors == []


def test_export_and_paste(page: Page) -> None:
    told = page.evaluate("fetch('/api/export/csv').then((answer) => answer.text())")
    assert told.startswith("row,cluster,cluster_name,confidence,corrected,text,x,y")
    page.click("#new-texts")
    page.type("my parcel is late\nI forgot my password")
    page.click("#try button")
    page.wait("document.querySelectorAll('.placed').length === 2")
    assert page.evaluate("document.querySelector('.placed button').innerText") in _names(page)
    page.click(".placed button")
    page.wait("!document.getElementById('group-side').hidden")
    assert page.errors == []


def test_a_refusal_is_told_and_what_happened_elsewhere_is_shown(page: Page, run: Path) -> None:
    from coterie.edits.kinds import Edit
    from coterie.edits.log import EditLog

    EditLog(run).append(Edit("rename", [0], name="From elsewhere"), seen=0)
    page.click("#groups li:nth-child(2) button")
    page.wait("!document.getElementById('group-side').hidden")
    _settled(page)
    page.click("#noise")
    page.wait("document.getElementById('message').innerText.includes('edited elsewhere')")
    page.wait("listed.some((each) => each.name === 'From elsewhere')")
    assert len(_lines(run)) == 1


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_nothing_is_wider_than_the_page(run: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with Served(run) as served, Page(tmp_path / "profile", width=width, height=844, dark=dark) as page:
        page.open(served.address)
        page.evaluate("choose(0)")
        page.wait("!document.getElementById('group-side').hidden")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(20, 23, 26)") is dark
        assert page.errors == []
