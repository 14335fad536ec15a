"""Seconds from ``coterie predict`` on ten lines to its answer, in a new process, on a CPU.

PYTHONPATH=src python benchmarks/speed/cold_start.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from common import generate_titles, repeated, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    from coterie import FrozenEncoder

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        FrozenEncoder(5, device="cpu").fit(generate_titles(300)).save_pretrained(folder / "model")
        (folder / "ten.txt").write_text("\n".join(generate_titles(10, seed=1)) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "coterie", "predict", str(folder / "model"), str(folder / "ten.txt")]
        command += ["-o", str(folder / "out.csv"), "--overwrite", "--device", "cpu", "--quiet"]

        def predict() -> None:
            subprocess.run(command, check=True)

        def imported(what: str) -> None:
            subprocess.run([sys.executable, "-c", f"import {what}"], check=True)

        found = {
            "predict": repeated(predict, options.repeats),
            "import_sentence_transformers": repeated(lambda: imported("sentence_transformers"), 3),
            "import_torch": repeated(lambda: imported("torch"), 3),
        }
    write(options.out, "cold_start", {"seconds": found["predict"]["median"], **found})


if __name__ == "__main__":
    main()
