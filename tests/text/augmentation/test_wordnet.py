"""The table of synonyms, and how words of a text find their line in it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from call_count import calls_of

from coterie.text.augmentation import wordnet
from coterie.text.augmentation.wordnet import STOP_WORDS, TABLE, look_up, synonyms_of

ROOT = Path(__file__).parents[3]
WORDNET_FILES = Path("/usr/share/wordnet")  # where Debian's package wordnet-base puts them


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return gzip.decompress(TABLE.read_bytes()).decode("ascii").splitlines()


def test_the_table(lines: list[str]) -> None:
    assert 55_000 < len(lines) < 70_000
    assert TABLE.stat().st_size < 1_100_000
    assert lines == sorted(lines)
    words = [line.split("\t")[0] for line in lines]
    assert len(set(words)) == len(words)
    entries = dict(line.split("\t") for line in lines)
    for word, entry in entries.items():
        assert word == word.lower() and len(word) > 1 and " " not in word and not any(map(str.isdigit, word))
        if entry.startswith("="):
            assert not entries[entry[1:]].startswith("=")
        else:
            synonyms = entry.split("|")
            assert all(synonyms) and word not in synonyms and len(set(synonyms)) == len(synonyms)
            assert entry == entry.lower()


def test_the_file_is_the_same_whenever_it_is_written() -> None:
    header = TABLE.read_bytes()[:10]
    assert header[4:8] == bytes(4)  # no time
    assert header[3] == 0  # no name
    assert header[9] == 255  # no system


def test_the_licence_stands_beside_it() -> None:
    licence = (TABLE.parent / "LICENSE").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence
    assert "src/coterie/text/augmentation/data/LICENSE" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.skipif(not (WORDNET_FILES / "data.noun").is_file(), reason="WordNet's files are not installed")
def test_the_tool_writes_this_table(tmp_path: Path) -> None:
    written = tmp_path / "table.tsv.gz"
    tool = ROOT / "tools" / "wordnet_table.py"
    subprocess.run([sys.executable, str(tool), str(WORDNET_FILES), "--out", str(written)], check=True, timeout=60)
    # Compared unpacked: another version of zlib packs the same content in other bytes.
    assert gzip.decompress(written.read_bytes()) == gzip.decompress(TABLE.read_bytes())


def test_loading_splits_each_line_once() -> None:
    calls = calls_of(wordnet._table.__wrapped__)
    # A call for the line and one for its split; synonyms are split when they are looked up.
    assert calls < 2.1 * len(wordnet._table())
    assert wordnet._table() is wordnet._table()


@pytest.mark.parametrize(
    ("word", "synonym"),
    [
        ("error", "mistake"),
        ("buy", "purchase"),
        ("quickly", "rapidly"),
        ("big", "large"),
        ("file", "data file"),
    ],
)
def test_all_parts_of_speech(word: str, synonym: str) -> None:
    assert synonym in synonyms_of(word)


def test_the_commonest_sense_comes_first() -> None:
    assert synonyms_of("error")[0] == "mistake"
    assert synonyms_of("car")[0] == "auto"
    assert synonyms_of("picture").index("image") < synonyms_of("picture").index("movie")
    # Over the parts of speech together: "plant" the factory, before "plant" to set in the ground.
    assert synonyms_of("plant").index("works") < synonyms_of("plant").index("set")


@pytest.mark.parametrize(
    ("form", "base"),
    [
        ("errors", "error"),
        ("queries", "query"),
        ("boxes", "box"),
        ("purchased", "purchase"),
        ("purchasing", "purchase"),
        ("stopped", "stop"),
        ("children", "child"),
        ("bought", "buy"),
        ("slowest", "slow"),
        ("happier", "happy"),
        ("using", "use"),
    ],
)
def test_inflected_forms_find_their_base(form: str, base: str) -> None:
    assert synonyms_of(form) == tuple(synonym for synonym in synonyms_of(base) if synonym != form) != ()


@pytest.mark.parametrize("word", ["css", "ios", "js", "xyzzy", "", "2024", "c", "包", "node.js"])
def test_words_without_synonyms(word: str) -> None:
    assert synonyms_of(word) == ()
    assert look_up(word) is None


def test_a_page_is_not_a_name() -> None:
    assert "thomas nelson page" not in synonyms_of("page")
    assert "city of light" in synonyms_of("paris")


def test_slurs_and_obscenities_are_left_out(lines: list[str]) -> None:
    written = {word for line in lines for part in line.split("\t") for word in part.lstrip("=").split("|")}
    assert not written & {"kraut", "wog", "paleface"}
    assert {"boy", "suit"} <= written  # common in other senses
    assert "son" in synonyms_of("boy")


@pytest.mark.parametrize(
    "word", ["the", "The", "don't", "don’t", "it's", "It's!", "(of)", "isn't?", "WE", "other's", "the”"]
)
def test_stop_words_have_none(word: str) -> None:
    assert look_up(word) is None


def test_stop_words_are_words() -> None:
    assert len(STOP_WORDS) > 150
    assert all(word == word.lower().strip() for word in STOP_WORDS)
    assert {"the", "and", "not", "my"} < STOP_WORDS
    assert not STOP_WORDS & {"error", "parcel", "refund", "password"}


def test_a_word_with_what_clings_to_it() -> None:
    entry = look_up("“Error's”,")
    assert entry is not None
    assert (entry.before, entry.core, entry.after) == ("“", "Error", "'s”,")
    assert entry.in_place("computer error") == "“Computer error's”,"


def test_a_word_is_looked_up_once() -> None:
    first = wordnet.look_up("parcels,")
    hits = wordnet.look_up.cache_info().hits
    assert wordnet.look_up("parcels,") is first
    assert wordnet.look_up.cache_info().hits == hits + 1
