"""``coterie fit --config``: settings from a file, and the command line goes first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import done

from coterie.cli.settings import Config, read_config
from coterie.errors import SettingError

ROOT = Path(__file__).parents[2]
TEXTS = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset", "reset it"]


def _write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_names_and_nested_training(tmp_path: Path) -> None:
    file = _write(
        tmp_path / "c.yaml",
        "method: uftc\nn_clusters: 4\nseed: 3\nsettings:\n  alpha: 1\n  training.batch_size: 16\n"
        "  training:\n    learning_rate: 5e-6\n",
    )
    assert read_config(file) == Config(
        "uftc", 4, 3, {"alpha": 1, "training.batch_size": 16, "training.learning_rate": 5e-6}
    )


@pytest.mark.parametrize("file", sorted((ROOT / "experiments").rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_experiment_file_is_a_configuration(file: Path) -> None:
    config = read_config(file)
    assert config.method == file.parent.name
    assert config.settings


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("- a list", "names and values"),
        ("settings: 3", "names and values"),
        ("setings: {}", "'setings' is unknown"),
        ("a: [", "not YAML"),
        ("n_clusters: many", "n_clusters='many'"),
        ("seed: 1.5", "seed=1.5"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    with pytest.raises(SettingError, match=problem) as caught:
        read_config(_write(tmp_path / "c.yaml", content))
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        read_config(tmp_path / "none.yaml")


def test_a_run_can_be_repeated_from_its_record(
    tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "in.txt", "\n".join(TEXTS) + "\n")
    _write(tmp_path / "c.yaml", f"method: frozen\nn_clusters: 3\nseed: 5\nsettings:\n  encoder: {tiny_encoder}\n")
    done("fit", "in.txt", "--config", "c.yaml", "-k", "2", "-o", "one", "-q")
    record = json.loads((tmp_path / "one" / "run.json").read_text(encoding="utf-8"))
    # -k on the command line, everything else from the file.
    assert (record["method"], record["seed"], record["settings"]["n_clusters"]) == ("frozen", 5, 2)
    done("fit", "in.txt", "--config", "one/run.json", "-o", "two", "-q")
    assert (tmp_path / "one" / "assignments.csv").read_text() == (tmp_path / "two" / "assignments.csv").read_text()
    done("fit", "in.txt", "--config", "one/run.json", "--set", "clusterer=ward", "-o", "three", "-q")
    record = json.loads((tmp_path / "three" / "run.json").read_text(encoding="utf-8"))
    assert record["settings"]["clusterer"] == "ward"


def test_the_sample_of_a_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("sample: 30\n")
    assert read_config(tmp_path / "c.yaml").sample == 30
