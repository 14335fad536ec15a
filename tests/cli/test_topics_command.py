"""``coterie benchmark topics``."""

from __future__ import annotations

from pathlib import Path

from command_line import done, refusal

from coterie.benchmark.catalogue import find_row
from coterie.benchmark.rows import PROTOCOL
from coterie.benchmark.sets import find_set
from coterie.benchmark.store import Job, Store


def test_topics_are_printed_by_a_command(tmp_path: Path) -> None:
    store = Store(tmp_path)
    command = ("benchmark", "topics", "--datasets", "stackoverflow", "--out", tmp_path)
    assert "run --methods deccrl --datasets stackoverflow --seeds 0" in refusal(*command)
    name = Job(find_row("deccrl"), find_set("stackoverflow"), 0).name
    store.write(name, {"protocol": PROTOCOL})
    assert "topics were not stored" in refusal(*command)
    topics = [
        {"cluster": 0, "texts": 1034, "topics": ["mac, osx, terminal, command", "file, set, create, window"]},
        {"cluster": 1, "texts": 998, "topics": ["excel, cell, worksheet, data", "file, xml, table, list"]},
    ]
    store.write(name, {**store.read(name), "topics": topics})
    assert done(*command).out == (
        "## DECCRL on stackoverflow, seed 0: topics\n\n"
        "| cluster | texts | topic 1 | topic 2 |\n"
        "|---|---|---|---|\n"
        "| 0 | 1,034 | mac, osx, terminal, command | file, set, create, window |\n"
        "| 1 | 998 | excel, cell, worksheet, data | file, xml, table, list |\n"
    )
