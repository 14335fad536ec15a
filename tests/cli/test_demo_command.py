"""``coterie demo`` on the bundled sample, with a tiny encoder in place of the real one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import RUN_FILES, Outcome, column, done, read_header, read_json, read_rows, refusal
from conftest import topic_texts

from coterie.datasets.loading import find_dataset
from coterie.methods import build_method


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tiny_encoder: Path) -> list[dict[str, Any]]:
    """What the demo asks for; the method is built with a tiny encoder and two steps."""
    requests: list[dict[str, Any]] = []
    build = build_method.build_method

    def build_small(
        name: str, n_clusters: int, seed: int, chosen: Mapping[str, Any], common: Mapping[str, Any]
    ) -> object:
        requests.append({"name": name, "n_clusters": n_clusters, "seed": seed, **chosen, **common})
        small = {**chosen, "encoder": str(tiny_encoder), "training.max_steps": 2}
        return build(name, n_clusters, seed, small, common)

    monkeypatch.setattr(build_method, "build_method", build_small)
    return requests


def check_run(run: Path) -> None:
    sample = find_dataset("support")
    assert sample is not None
    assert {path.name for path in run.iterdir()} == RUN_FILES | {"report.html", "map.safetensors"}
    assert read_header(run / "assignments.csv") == ["row", "id", "cluster", "confidence", "status", "text"]
    assert column(run / "assignments.csv", "id") == column(sample, "id")
    assert column(run / "assignments.csv", "text") == column(sample, "text")
    assert read_json(run / "run.json")["rows"] == len(read_rows(sample))


def last_lines(outcome: Outcome) -> list[str]:
    return outcome.out.rstrip("\n").split("\n")[-4:]


def test_the_demo_clusters_the_sample_and_says_how_well(
    asked: list[dict[str, Any]], run_folder: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(run_folder, tmp_path / "run")
    outcome = done("demo", "-o", run, "--seed", 4, "--device", "cpu", "--overwrite")
    assert len(asked) == 1
    assert asked[0].items() >= {"name": "auto", "n_clusters": 15, "seed": 4, "device": "cpu"}.items()
    check_run(run)
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
    assert read_json(run / "run.json")["seed"] == 4
    assert "770 rows from the bundled sample 'support'; 15 clusters by auto" in outcome.err

    sample = find_dataset("support")
    assert sample is not None
    options = ("--labels", sample.with_name("topics.csv"), "--label-column", "topic", "--id-column", "id", "--json")
    scores = json.loads(done("evaluate", run / "assignments.csv", *options).out)
    wrote, against, see, now = last_lines(outcome)
    assert wrote.startswith(f"Wrote {run}/ ")
    assert against == (
        f"Against the sample's own 12 topics, which were not used: accuracy {100 * scores['accuracy']:.0f} %, "
        f"NMI {100 * scores['nmi']:.0f} % (15 clusters: an encoder for English separates other languages)."
    )
    assert see.startswith(f"Open {run / 'report.html'} in a browser")
    assert '"scores":' in (run / "report.html").read_text(encoding="utf-8")
    assert now.startswith("Now your own texts: coterie fit FILE.csv -k 20 -o run;")
    assert now.endswith(f"coterie predict {run} NEW.csv -o OUT.csv")


def test_the_demo_writes_demo_run_here(
    asked: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done("demo")
    check_run(tmp_path / "demo-run")
    assert "exists already" in refusal("demo")
    # What the last line promises: the run takes new texts.
    (tmp_path / "new.csv").write_text("text\n" + "\n".join(topic_texts(5)[0]) + "\n")
    done("predict", "demo-run", "new.csv", "-q", "-o", "out.csv")
    assert len(read_rows(tmp_path / "out.csv")) == 5
