"""Every example of the documentation and of the README runs, and shows what the page says it shows."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import coterie, done, process_environment, write_csv
from docs.examples import Example, examples_of, missing_lines

from coterie import load_dataset

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs" / "first-steps.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    ROOT / "docs" / "reference" / "python.md",
]
# Pages that list commands about one run: a test runs each command once, README first.
COMMAND_PAGES = (ROOT / "README.md", ROOT / "docs" / "commands.md")
# Commands of those pages that no test can run as they are, and why.
COMMANDS_NOT_RUN = {
    "pip install": "needs a package index; tools/release_check.py installs the wheel",
    "make demo": "sets up an environment; tests/cli/test_demo_command.py runs the command behind it",
    "make test": "runs this test",
    "coterie explore": "serves until it is stopped",
    "coterie benchmark": "trains several methods; tests/benchmark runs it on made texts",
}
# Texts of those examples: enough for their 20 clusters, few enough to train in seconds.
README_TEXTS = 48


def _page(path: Path) -> str:
    return str(path.relative_to(ROOT))


# Characters by which a shell line is more than a command and its arguments.
SHELL = set("|&;<>()$`*?[]{}#~\\")


def run_block(example: Example, folder: Path) -> str:
    """Return what a block of shell prints; in this process where it is only commands of Coterie, which start faster."""
    lines = [line for line in example.code.splitlines() if line.strip()]
    if not all(line.startswith("coterie ") and not SHELL & set(line) for line in lines):
        return run_shell(example, folder)
    printed = ""
    for line in lines:
        outcome = coterie(*shlex.split(line)[1:], report="--no-report" not in line)
        assert outcome.code == 0, outcome.err
        printed += outcome.out + outcome.err
    return printed


def run_shell(example: Example, folder: Path) -> str:
    """Return what a block prints, run by a shell in which ``coterie`` is the one under test."""
    environment = process_environment() | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    finished = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", example.code],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def run_python(example: Example, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example.code, f"line {example.line}", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=_page)
def test_examples_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is followed from top to bottom in one empty folder, as a reader would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    examples = examples_of(page)
    assert any(not each.reason for each in examples), "a page of examples runs at least one"
    names: dict[str, object] = {}
    for example in examples:
        if example.reason:
            assert not example.shown, f"{page.name}:{example.line} shows what nobody has seen"
            continue
        printed = run_block(example, tmp_path) if example.language == "bash" else run_python(example, names)
        missing = missing_lines(example.shown, printed)
        assert not missing, f"{page.name}:{example.line} shows {missing}, but it printed:\n{printed}"


def test_every_block_of_a_page_is_an_example() -> None:
    """A block in a language nobody runs would slip through."""
    for page in PAGES:
        fences = re.findall(r"^```(\S*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(fences) <= {"bash", "python", "text", ""}, page.name
        # Every second fence closes a block, and is bare.
        assert all(fences[0::2]) and not any(fences[1::2]), page.name


# --- README ---


@pytest.fixture
def readme_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the README and docs/commands.md name."""
    sample = load_dataset("support", offline=True)
    filled = [(text, label) for text, label in zip(sample.texts, sample.labels, strict=True) if text.strip()]
    texts, labels = zip(*filled[:README_TEXTS], strict=True)
    write_csv(tmp_path / "tickets.csv", {"message": texts})
    write_csv(tmp_path / "gold.csv", {"topic": labels})
    write_csv(tmp_path / "tomorrow.csv", {"text": ["my parcel is late", "please refund me"]})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listed_commands(page: Path) -> list[str]:
    """The lines of a page's blocks in shell or without a language."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    code = "".join(code for language, code in blocks if language in {"", "bash", "sh"})
    lines = [line.split(" #")[0].strip() for line in code.splitlines()]
    return [line for line in lines if line]


def test_commands_of_the_readme_and_of_the_commands_page(readme_folder: Path) -> None:
    """In this process: a dozen starts of the interpreter would take longer than the work."""
    ran = 0
    for line in dict.fromkeys(line for page in COMMAND_PAGES for line in listed_commands(page)):
        if any(line.startswith(command) for command in COMMANDS_NOT_RUN):
            continue
        program, *arguments = shlex.split(line)
        assert program == "coterie", f"{line}: neither run nor in COMMANDS_NOT_RUN"
        if "other-run" in arguments and not Path("other-run").exists():
            shutil.copytree("run", "other-run")
        done(*arguments)
        ran += 1
    assert ran >= 9
    with Path("tomorrow-clusters.csv").open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 2


def test_python_of_the_readme(readme_folder: Path) -> None:
    blocks = [each for each in examples_of(ROOT / "README.md") if each.language == "python"]
    assert blocks
    with Path("tickets.csv").open(encoding="utf-8", newline="") as stream:
        names: dict[str, object] = {"texts": [row["message"] for row in csv.DictReader(stream)]}
    for example in blocks:
        if not example.reason:
            run_python(example, names)
    assert Path("run/report.html").is_file()


# --- the checks themselves ---


def test_reasons_and_output_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```bash\none\n```\n\nYou see:\n\n```text\n1 of … \n```\n\n<!-- not run: no GPU -->\n```python\ntwo\n```\n",
        encoding="utf-8",
    )
    first, second = examples_of(page)
    assert (first.language, first.code, first.line, first.reason, first.shown) == ("bash", "one\n", 1, "", "1 of … \n")
    assert (second.language, second.reason, second.shown) == ("python", "no GPU", "")


@pytest.mark.parametrize(
    ("shown", "printed", "missing"),
    [("a  b\n", "a b\n", []), ("1 of …", "1 of 7", []), ("1 of …", "2 of 7", ["1 of …"]), ("a", "ab", ["a"])],
)
def test_missing_lines(shown: str, printed: str, missing: list[str]) -> None:
    assert missing_lines(shown, printed) == missing


@pytest.mark.parametrize(
    "broken",
    [
        lambda folder: run_block(Example("bash", "false\ntrue", 1), folder),
        lambda folder: run_block(Example("bash", "coterie predict no-run no.csv\ncoterie methods", 1), folder),
        lambda _: run_python(Example("python", "1 / 0", 1), {}),
    ],
)
def test_a_failing_example_fails(broken: Callable[[Path], str], tmp_path: Path) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        broken(tmp_path)
