"""Write docs/demo.svg, the picture in the README, from the run folder of `make demo`.

python tools/demo_picture.py demo-run docs/demo.svg
"""

from __future__ import annotations

import io
import json
import sys
from dataclasses import fields
from pathlib import Path

from rich.console import Console

from coterie.cli.tables import print_clusters
from coterie.types import ClusterSummary


def main(run: Path, picture: Path) -> None:
    clusters = json.loads((run / "clusters.json").read_text(encoding="utf-8"))["clusters"]
    known = [field.name for field in fields(ClusterSummary)]
    summaries = [ClusterSummary(**{name: card[name] for name in known if name in card}) for card in clusters]
    console = Console(record=True, width=130, file=io.StringIO(), force_terminal=True)
    print_clusters(summaries, console=console)
    # Generic font names: the picture must not load anything from anywhere.
    svg = console.export_svg(title="coterie demo")
    start, end = svg.index("@font-face"), svg.rindex("@font-face")
    end = svg.index("}", end) + 1
    picture.write_text(svg[:start] + svg[end:], encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
