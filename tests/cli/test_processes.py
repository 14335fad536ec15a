"""What only a process of its own can show: Ctrl-C, a closed pipe, the same bytes again."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from command_line import RUN_FILES, column, coterie_process, done, process_environment, read_json, write_csv
from conftest import topic_texts

# A shell may start its children with SIGINT ignored; a terminal never does.
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from coterie.cli.main import main; main()"
)


class ErrorReader:
    """Reads a process's standard error as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.text = ""
        self._process = process
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        while data := stream.read(1):
            self.text += data.decode("utf-8", "replace")

    def wait_for(self, text: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < end, f"{text!r} did not come: {self.text}"
            assert self._process.poll() is None, self.text
            time.sleep(0.02)

    def finish(self) -> str:
        self._thread.join(timeout=10)
        return self.text


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")
def test_ctrl_c_ends_training_and_keeps_the_model_so_far(tmp_path: Path, tiny_encoder: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"text": topic_texts(200)[0]})
    settings = ("training.max_epochs=100000", "training.max_steps=1000000", "training.check_every=0")
    options = ["-k", "3", "-m", "sccl", "--encoder", str(tiny_encoder), "-o", str(tmp_path / "run")]
    options += [part for setting in settings for part in ("--set", setting)]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "fit", str(path), *options],
        env=process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        errors = ErrorReader(process)
        errors.wait_for("sccl:   0%", seconds=90)
        # The bar is drawn before the first step; the loss terms stand in it after some.
        errors.wait_for("loss=", seconds=30)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        out = process.stdout.read().decode("utf-8")
        code = process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert code == 0, errors.finish()
    assert "Traceback" not in errors.finish()
    assert "Note: training was interrupted after" in out
    assert {entry.name for entry in tmp_path.iterdir()} == {"in.csv", "run"}
    assert {entry.name for entry in (tmp_path / "run").iterdir()} == RUN_FILES | {"report.html", "map.safetensors"}
    run = read_json(tmp_path / "run" / "run.json")
    assert run["history"]["stop_reasons"] == {"sccl": "interrupted"}
    steps = len(run["history"]["steps"])
    assert 0 < steps < 1_000_000
    assert any(f"interrupted after {steps} steps" in note for note in run["notes"])
    assert len(column(tmp_path / "run" / "assignments.csv", "row")) == 200
    # The model so far is a whole model.
    done("predict", tmp_path / "run", path, "-q", "-o", tmp_path / "out.csv")
    assert column(tmp_path / "out.csv", "cluster") == column(tmp_path / "run" / "assignments.csv", "cluster")


@pytest.mark.usefixtures("full_maps")
def test_a_process_of_its_own_writes_the_same_bytes(tmp_path: Path, tiny_encoder: Path) -> None:
    texts, topics = topic_texts(40)
    path = write_csv(tmp_path / "in.csv", {"text": [*texts, ""], "group": [*topics, ""]})
    options = ("-k", 3, "--encoder", tiny_encoder, "--set", "training.max_steps=3", "-q", "--seed", 3)
    done("fit", path, *options, "--report", "-o", tmp_path / "here")
    there = coterie_process(
        "--verbose", "fit", "in.csv", *options, "-o", "there", cwd=tmp_path, environment={"PYTHONHASHSEED": "7"}
    )
    assert (there.code, there.out) == (0, ""), there.err
    assert "coterie.methods.base: 1 of 41 rows are empty" in there.err
    for name in ("assignments.csv", "clusters.json", "report.html"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_a_closed_pipe_is_no_crash(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "coterie", "methods", "--json"],
        env=process_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read().decode("utf-8")
    process.stderr.close()
    assert process.wait(timeout=60) in (0, 1)
    assert "Traceback" not in errors
