"""``coterie explore`` as a command: what it refuses before it serves, and what it says."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from command_line import refusal


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    assert "is not a run of Coterie" in refusal("explore", tmp_path, "--no-browser")


def test_a_run_without_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "assignments.csv").write_text("row,cluster,confidence,status\n1,0,0.5,assigned\n")
    assert "holds no texts" in refusal("explore", tmp_path, "--no-browser")


def test_a_port_in_use_is_named(run_folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refusal("explore", run_folder, "--no-browser", "--port", port)
    assert f"cannot listen on 127.0.0.1:{port}" in message and "--port 0" in message


def test_it_serves_until_it_is_interrupted(run_folder: Path) -> None:
    command = [sys.executable, "-m", "coterie", "explore", str(run_folder), "--no-browser", "--port", "0"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert run.stdout is not None
        line = run.stdout.readline()
        address = line.split(" at ")[1].split(" ")[0]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert b"Coterie explorer" in answer.read()
        run.send_signal(signal.SIGINT)
        assert "0 edits are kept" in run.stdout.read()
        assert run.wait(30) == 0
    finally:
        run.kill()
        run.communicate()
    assert not (run_folder / "edits.jsonl").exists()
