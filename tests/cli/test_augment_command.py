"""``coterie augment``: what it shows, what it writes, what it refuses."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from command_line import coterie, done, process_environment, read_rows, refusal, tree, write_csv, write_parquet
from conftest import topic_texts
from rich.console import Console

from coterie.cli.augment import _mark_changes
from coterie.text.augmentation import registry
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.eda import EDA
from coterie.text.augmentation.registry import AUGMENTERS, AugmenterInfo
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.text.augmentation.wordnet import synonyms_of

TEXTS = topic_texts(30)[0]
calls: list[int] = []


@dataclass(frozen=True)
class Slow(Augmenter):
    """Stands for an augmenter with a language model."""

    device: str = "auto"
    slow: ClassVar[bool] = True

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        calls.append(len(texts))
        assert all(text.strip() for text in texts)
        return [f"{text} on {self.device}" for text in texts]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "in.csv", {"id": list(range(32)), "text": [*TEXTS, "", TEXTS[0]]})


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    calls.clear()
    monkeypatch.setattr(registry, "AUGMENTERS", (*AUGMENTERS, AugmenterInfo("slow", f"{__name__}:Slow", "rule", "-")))


# --- what it shows ---


def test_examples_with_what_changed(file: Path) -> None:
    outcome = done("augment", file, "--with", "word_deletion(ratio=0.4)", "--show", 5)
    assert "original" in outcome.out and "augmented" in outcome.out
    assert TEXTS[4] in outcome.words and TEXTS[5] not in outcome.words
    assert "[-" in outcome.out and "{+" not in outcome.out  # words go, none comes
    assert "WordDeletion(ratio=0.4): 30 distinct texts," in outcome.out
    assert "% unchanged" in outcome.out and "texts/s" in outcome.out
    assert "{+" in done("augment", file, "--with", "char_swap", "--show", 3).out


def test_no_examples(file: Path) -> None:
    outcome = done("augment", file, "--show", 0)
    assert "original" not in outcome.out
    assert "WordDeletion(ratio=0.2)" in outcome.out


def test_new_words_are_marked_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("help help\nxyzzy\n", encoding="utf-8")
    outcome = done("augment", tmp_path / "in.txt", "--with", "random_insertion(candidates=1)")
    assert "(unchanged)" in outcome.out
    assert f"{{+{synonyms_of('help')[0]}+}}" in outcome.out
    assert "[-" not in outcome.out


def test_a_terminal_shows_colours_in_place_of_brackets() -> None:
    console = Console(force_terminal=True, color_system="standard")
    marked = _mark_changes("where is my parcel", "where is package now", console)
    assert marked.plain == "where is my parcel package now"
    styles = {marked.plain[span.start : span.end]: span.style for span in marked.spans}
    assert styles == {"my parcel": "red strike", "package now": "bold green"}


def test_chinese_without_spaces(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("我的包裹在哪里？\n", encoding="utf-8")
    outcome = done("augment", tmp_path / "in.txt", "--with", "eda(operations=[deletion])")
    assert outcome.out.count("[-") == 1
    shown = next(line for line in outcome.out.splitlines() if "[-" in line).split()
    assert shown[1].replace("[-", "").replace("-]", "") == "我的包裹在哪里？"


def test_json(file: Path) -> None:
    content = json.loads(done("augment", file, "--with", "eda", "--ratio", 0.3, "--show", 2, "--json").out)
    assert content["rows"] == 32 and content["empty_rows"] == 1 and content["distinct_texts"] == 30
    (view,) = content["views"]
    assert view["augmenter"] == EDA(0.3).describe()
    assert 0 <= view["unchanged_share"] < 0.1 and view["seconds"] > 0 and view["texts_per_second"] > 0
    assert view["from_cache"] is False
    expected = EDA(0.3).augment(TEXTS, np.random.default_rng([0, 0]))[:2]
    assert content["examples"] == [
        {"original": text, "augmented": view} for text, view in zip(TEXTS[:2], expected, strict=True)
    ]


def test_two_views(file: Path) -> None:
    content = json.loads(done("augment", file, "--with", "eda | word_deletion", "--seed", 5, "--json").out)
    assert [view["augmenter"].split("(")[0] for view in content["views"]] == ["EDA", "WordDeletion"]
    expected = WordDeletion(0.2).augment(TEXTS, np.random.default_rng([5, 1]))[0]
    assert content["examples"][0]["augmented_2"] == expected
    assert "augmented_2" in done("augment", file, "--with", "eda | word_deletion").out


def test_the_list() -> None:
    outcome = done("augment", "--list")
    for info in AUGMENTERS:
        assert info.name in outcome.words and info.summary in outcome.words
    assert [entry["name"] for entry in json.loads(done("augment", "--list", "--json").out)] == [
        info.name for info in AUGMENTERS
    ]


def test_a_data_set_by_name() -> None:
    content = json.loads(done("augment", "support", "--show", 1, "--json").out)
    assert content["rows"] == 770
    assert (
        json.loads(done("augment", "support", "--text-column", "id", "--with", "char_swap", "--json").out)["rows"]
        == 770
    )


# --- what it writes ---


@pytest.mark.parametrize("ending", ["csv", "jsonl", "txt"])
def test_one_row_in_one_row_out(file: Path, tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"out.{ending}"
    outcome = done("augment", file, "--with", "word_deletion", "-o", target, "--seed", 3)
    assert f"Wrote 32 rows to {target}" in outcome.out
    expected = WordDeletion(0.2).augment(TEXTS, np.random.default_rng([3, 0]))
    expected = [*expected, "", expected[0]]  # equal texts get equal ones, an empty row stays empty
    if ending == "txt":
        assert target.read_text(encoding="utf-8").split("\n") == [*expected, ""]
        return
    if ending == "csv":
        rows: list[dict[str, str]] = read_rows(target)
    else:
        rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"original": text, "augmented": view} for text, view in zip([*TEXTS, "", TEXTS[0]], expected, strict=True)
    ]


def test_two_views_are_two_columns(file: Path, tmp_path: Path) -> None:
    done("augment", file, "--with", "eda | char_swap", "-o", tmp_path / "out.csv")
    assert list(read_rows(tmp_path / "out.csv")[0]) == ["original", "augmented_1", "augmented_2"]
    done("augment", file, "--with", "eda | char_swap", "-o", tmp_path / "out.txt")
    lines = (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 32 and all(line.count("\t") == 1 for line in lines)


def test_odd_texts_come_through(tmp_path: Path) -> None:
    texts = ["carriage\rreturn here", 'quote " and, comma', "two\nlines of text", "   ", "=1+1 formula text"]
    given = write_parquet(tmp_path / "in.parquet", {"text": texts})
    done("augment", given, "--with", "char_swap", "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, strict=True))
    assert [row["original"] for row in rows] == texts
    assert rows[3]["augmented"] == "   "
    done("augment", given, "--with", "char_swap", "-o", tmp_path / "out.txt")
    assert len((tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")) == len(texts) + 1


def test_the_seed_decides(file: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        done("augment", file, "--seed", seed, "-o", tmp_path / f"{name}.csv")
    first, again, other = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert first == again != other


# --- the cache ---


@pytest.mark.usefixtures("_slow")
def test_what_takes_long_is_kept(file: Path) -> None:
    first = json.loads(done("augment", file, "--with", "slow", "--device", "cpu", "--json").out)
    again = json.loads(done("augment", file, "--with", "slow", "--device", "cpu", "--json").out)
    assert calls == [30]
    assert [run["views"][0]["from_cache"] for run in (first, again)] == [False, True]
    assert first["examples"] == again["examples"]
    assert first["examples"][0]["augmented"].endswith("on cpu")
    assert "from the cache" in done("augment", file, "--with", "slow", "--device", "cpu").out
    done("augment", file, "--with", "slow", "--device", "cpu", "--no-cache")
    done("augment", file, "--with", "slow", "--device", "cpu", "--seed", 1)
    assert calls == [30, 30, 30]


def test_what_is_quick_is_not_kept(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    done("augment", file)
    assert not (tmp_path / "cache").exists()


# --- what it refuses ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--with", "edaa"], ["'edaa' is unknown", "'eda'", "char_swap"]),
        (["--with", "eda(top=3)"], ["no setting 'top'", "alpha"]),
        (["--with", "virtual"], ["setting of the method"]),
        (["--with", "eda | eda | eda"], ["3 views"]),
        (["--with", "word_deletion", "--ratio", "2"], ["ratio=2"]),
        (["--text-column", "body"], ["body"]),
        (["-o", "out.parquet"], ["out.parquet", ".csv, .jsonl, .txt"]),
        (["-o", "in.csv", "--overwrite"], ["is the input itself"]),
        (["-o", "there.csv"], ["exists already", "--overwrite"]),
        (["-o", "folder"], ["is a folder"]),
    ],
)
def test_refusals(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").write_text("mine", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    before = tree(tmp_path)
    line = refusal("augment", "in.csv", *options)
    assert all(word in line for word in words), line
    assert tree(tmp_path) == before


def test_inputs_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no such file" in refusal("augment", tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    assert "empty" in refusal("augment", tmp_path / "empty.csv")
    assert "all 2 texts" in refusal("augment", write_csv(tmp_path / "blank.csv", {"text": ["", " "]}))
    assert "no column 'body'" in refusal("augment", "support", "--text-column", "body")


def test_an_augmenter_that_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("我的包裹在哪里？\n", encoding="utf-8")
    line = refusal("augment", tmp_path / "in.txt", "--with", "synonyms", "-o", tmp_path / "out.csv")
    assert "Synonyms" in line and "changed no text" in line and "char_swap" in line
    assert not (tmp_path / "out.csv").exists()


def test_no_input_at_all() -> None:
    outcome = coterie("augment")
    assert outcome.code == 2
    assert "--list" in outcome.err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom coterie.cli.main import main\nsys.argv = ['coterie', 'augment', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*[name for name in ('torch', 'numpy', 'sklearn', 'pyarrow') if name in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=process_environment(), timeout=60, check=True
    )
    assert run.stderr.strip() == ""
    assert "--with" in run.stdout
