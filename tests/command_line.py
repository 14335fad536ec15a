"""How the tests of the command line run it, and look at what it left behind."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from coterie.cli.main import main

OWN_COLUMNS = ["row", "cluster", "confidence", "status", "text"]
RUN_FILES = {"assignments.csv", "clusters.json", "model", "run.json"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Outcome:
    """Exit code, standard output and standard error of one run."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Standard output without colours, frames and line ends, as help texts are wrapped at will."""
        return " ".join(re.sub(r"[│╭╮╰╯─]", " ", _COLOUR.sub("", self.out)).split())


def coterie(*arguments: object, encoding: str = "utf-8", report: bool = False) -> Outcome:
    """Run the command line in this process; an exception that gets out ends as Python would end it.

    ``fit`` makes no report unless it is asked for by ``--report`` or by ``report``: most tests look at none.
    """
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    err = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace", newline="")
    given = ["coterie", *map(str, arguments)]
    if given[1:2] == ["fit"] and not report and "--report" not in given:
        given.append("--no-report")
    with mock.patch.object(sys, "argv", given), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception:
            traceback.print_exc()
            code = 1
    return Outcome(code, _content(out, encoding), _content(err, encoding))


def _content(stream: io.TextIOWrapper, encoding: str) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(encoding)


def coterie_process(*arguments: object, cwd: Path, environment: Mapping[str, str] | None = None) -> Outcome:
    """Run ``python -m coterie`` as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "coterie", *map(str, arguments)],
        cwd=cwd,
        env=process_environment() | dict(environment or {}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def process_environment() -> dict[str, str]:
    """This process's environment, with the package under test on the path."""
    import coterie

    source = str(Path(coterie.__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}


def done(*arguments: object) -> Outcome:
    """Run what has to succeed."""
    outcome = coterie(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome


def refusal(*arguments: object) -> str:
    """Run what has to be refused with exit code 1 and one line on standard error; that line."""
    outcome = coterie(*arguments)
    assert refusal_line(outcome) == outcome.err.rstrip("\n"), "there is more on standard error than the refusal"
    assert outcome.out == ""
    return refusal_line(outcome)


def refusal_line(outcome: Outcome) -> str:
    """The one line that says what was wrong."""
    assert "Traceback" not in outcome.err, outcome.err
    assert outcome.code == 1, outcome
    assert outcome.err.endswith("\n")
    lines = [line for line in outcome.err.split("\n") if line.startswith("coterie: ")]
    assert len(lines) == 1, outcome.err
    return lines[0]


def write_csv(path: Path, columns: Mapping[str, Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",", quoting=csv.QUOTE_ALL)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_jsonl(path: Path, columns: Mapping[str, Sequence[object]]) -> Path:
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, columns: Mapping[str, Sequence[object]]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)
    return path


def read_header(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as stream:
        return next(csv.reader(stream))


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, strict=True))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def column(path: Path, name: str) -> list[str]:
    return [row[name] for row in read_rows(path)]


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything under a folder, hidden or not: the content of files, None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
