"""Seconds from the command ``coterie explore RUN`` until the page shows its clusters and its map, in a browser.

    PYTHONPATH=src python benchmarks/speed/explorer_open.py RUN --made-on "one H200"

The browser (chromium, headless) is open already. Every time is of a new server and a new page; the first one, with cold
files, is left out of the median and reported beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import write

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "browser"))

from chromium import Page

MAP_IS_SHOWN = "map.context.getImageData(0, 0, map.canvas.width, map.canvas.height).data.some((value) => value > 0)"
TIMES = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--made-on", required=True, help="the machine that made the run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    record = json.loads((options.run / "run.json").read_text(encoding="utf-8"))
    times = [opened(options.run) for _ in range(TIMES)]
    result = {
        "run": {"rows": record["rows"], "method": record["method"], "made_on": options.made_on},
        "seconds_until_listening": [round(first, 3) for first, _ in times],
        "seconds_until_shown": [round(shown, 3) for _, shown in times],
        "median_shown": round(statistics.median(shown for _, shown in times[1:]), 3),
    }
    write(options.out, "explorer_open", result)


def opened(run: Path) -> tuple[float, float]:
    """Return the seconds until the server listens, and until everything is shown."""
    command = [sys.executable, "-m", "coterie", "explore", str(run), "--port", "0", "--no-browser", "--device", "cpu"]
    with tempfile.TemporaryDirectory() as profile, Page(Path(profile)) as page:
        began = time.perf_counter()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
            listening = time.perf_counter() - began
            page.open(address)
            page.wait("document.querySelectorAll('#clusters li').length > 1")
            page.wait(MAP_IS_SHOWN)
            return listening, time.perf_counter() - began
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
