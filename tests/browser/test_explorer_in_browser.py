"""The explorer as somebody uses it: in a real browser, by clicking through."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from chromium import PATIENCE, Page, chromium
from made_run import NASTY
from served import Served
from synthetic_run import write_run

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium here: see make test-browser")


@pytest.fixture
def run(run_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests: it takes a second to start."""
    with Page(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def page(run: Path, browser: Page) -> Iterator[Page]:
    with Served(run) as served:
        page = browser.start_over()
        page.open(served.address)
        yield page
        page.start_over()  # nothing asks the server when it ends


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
    assert page.evaluate("document.querySelectorAll('#clusters li').length") == 4
    assert page.evaluate("document.getElementById('selection').hidden")
    page.wait("map.context.getImageData(0, 0, map.canvas.width, map.canvas.height).data.some((value) => value > 0)")
    page.click("#search")
    page.type("<SCRIPT>")
    page.wait("document.querySelectorAll('#texts li').length === 1")
    assert page.text("#texts .text") == NASTY
    assert page.text("#found") == "1 of 63 distinct texts"
    assert page.evaluate("map.shown.reduce((a, b) => a + b, 0)") == 1
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.errors == []


def test_rename_merge_undo_redo(page: Page, run: Path) -> None:
    first, second = _names(page)[:2]
    page.click("#clusters li:nth-child(1) button")
    page.wait("!document.getElementById('cluster-side').hidden")
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
    page.click("#clusters li:nth-child(1) button")
    page.wait("!document.getElementById('cluster-side').hidden")
    _settled(page)
    _choose(page, "#split", "2")
    page.wait("listed.length === 5")
    _settled(page)
    page.click("#clusters li:nth-child(1) button")
    page.wait("!document.getElementById('cluster-side').hidden")
    _settled(page)
    text = page.text("#texts li:nth-child(1) .text")
    page.click("#texts li:nth-child(1) input")
    assert page.text("#selected") == "1 selected"
    _choose(page, "#move", "-1")
    page.wait("run.noise === 1")
    _settled(page)
    assert _lines(run)[-1]["texts"] == [text]
    page.click("#back")
    page.click("#clusters li:last-child button")
    page.wait(f"document.querySelector('#texts .text')?.innerText === {json.dumps(text)}")
    assert page.errors == []


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_the_export_is_a_file_with_every_row_as_it_is_now(page: Page, tmp_path: Path, form: str) -> None:
    page.keep_downloads(tmp_path / "downloads")
    page.click("#clusters li:nth-child(2) button")
    page.wait("!document.getElementById('cluster-side').hidden")
    _settled(page)
    page.click("#noise")
    page.wait("run.noise > 0")
    _settled(page)
    _choose(page, "#export", form)
    path = tmp_path / "downloads" / f"coterie-clusters.{form}"
    end = time.monotonic() + PATIENCE
    while not path.is_file() or not path.stat().st_size:
        assert time.monotonic() < end, list(path.parent.iterdir())
        time.sleep(0.05)
    rows = _rows(path)
    assert len(rows) == 65
    content = ["row", "cluster", "cluster_name", "confidence", "corrected", "text", "x", "y", "runner_up"]
    assert list(rows[0])[:9] == content
    assert any(row["text"] == NASTY for row in rows)
    noise = [row for row in rows if str(row["cluster"]) == "-1" and row["text"]]
    assert len(noise) == page.evaluate("run.noise") and not any(row["cluster_name"] for row in noise)
    assert page.errors == []


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_paste(page: Page) -> None:
    page.click("#new-texts")
    page.type("my parcel is late\nI forgot my password")
    page.click("#try button")
    page.wait("document.querySelectorAll('.assigned').length === 2")
    assert page.evaluate("document.querySelector('.assigned button').innerText") in _names(page)
    page.click(".assigned button")
    page.wait("!document.getElementById('cluster-side').hidden")
    assert page.errors == []


def test_a_refusal_is_told_and_what_happened_elsewhere_is_shown(page: Page, run: Path) -> None:
    from coterie.runs.edits.kinds import Edit
    from coterie.runs.edits.log import EditLog

    EditLog(run).append(Edit("rename", [0], name="From elsewhere"), seen=0)
    page.click("#clusters li:nth-child(2) button")
    page.wait("!document.getElementById('cluster-side').hidden")
    _settled(page)
    page.click("#noise")
    page.wait("document.getElementById('message').innerText.includes('edited elsewhere')")
    page.wait("listed.some((each) => each.name === 'From elsewhere')")
    assert len(_lines(run)) == 1


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_nothing_is_wider_than_the_page(run: Path, browser: Page, width: int, dark: bool) -> None:
    with Served(run) as served:
        page = browser.start_over(width=width, height=844, dark=dark)
        page.open(served.address)
        page.evaluate("choose(0)")
        page.wait("!document.getElementById('cluster-side').hidden")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(20, 23, 26)") is dark
        assert page.errors == []


def test_on_a_phone_clusters_come_first_and_the_map_names_them(tmp_path: Path, browser: Page) -> None:
    """Twelve clusters around a middle, as those of the bundled sample lie."""
    labels = np.arange(600) % 12
    angles, generator = 2 * np.pi * labels / 12, np.random.default_rng(0)
    middles = np.stack([8 * np.cos(angles), 6 * np.sin(angles)], axis=1)
    made = write_run(tmp_path / "run", labels, middles + generator.normal(scale=0.6, size=(600, 2)))
    (made / "clusters.json").write_text(
        (made / "clusters.json").read_text().replace('"Cluster ', '"Account, password '), encoding="utf-8"
    )
    with Served(made) as served:
        page = browser.start_over(width=390, height=844)
        page.open(served.address)
        _settled(page)
        page.wait("map.named !== undefined")
        assert page.evaluate("map.named") == 12
        top = "document.getElementById('{}').getBoundingClientRect().top"
        tops = [page.evaluate(top.format(each)) for each in ("points", "clusters", "try", "texts-side")]
        assert tops == sorted(tops)
        # The first clusters are in sight without scrolling.
        assert tops[1] < 700
        page.click("#clusters li:nth-child(3) button")
        page.wait("!document.getElementById('cluster-side').hidden")
        _settled(page)
        tops = [page.evaluate(top.format(each)) for each in ("points", "cluster-side", "texts-side", "try")]
        assert tops == sorted(tops)
        # No word of a button is broken.
        assert page.evaluate(
            "[...document.querySelectorAll('#cluster-side button, header button')].every((e) => e.offsetHeight < 45)"
        )
        assert page.errors == []


def test_a_wide_map_is_filled(tmp_path: Path, browser: Page) -> None:
    """A map that is higher than wide is drawn out to its canvas, not left as a strip in the middle."""
    generator = np.random.default_rng(0)
    made = write_run(tmp_path / "run", np.arange(200) % 2, generator.uniform(-1, 1, (200, 2)) * np.array([6.0, 9.0]))
    with Served(made) as served:
        page = browser.start_over()
        page.open(served.address)
        page.wait("map.fromX !== undefined")
        spread = (
            "((at) => (Math.max(...at) - Math.min(...at)) / map.canvas.{1})(Array.from(main.x, (_, i) => map.{0}(i)))"
        )
        assert page.evaluate(spread.format("top", "height")) > 0.85
        assert page.evaluate(spread.format("left", "width")) > 0.8
