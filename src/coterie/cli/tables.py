"""Print clusters as a table in a terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from coterie.types import ClusterSummary

# Characters per line where the output goes to a file or a pipe.
WIDTH_IN_A_PIPE = 120


def print_clusters(summaries: Sequence[ClusterSummary], most: int = 30, console: Console | None = None) -> None:
    """Print size, confidence, name, keywords and representative texts of the first ``most`` clusters."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from coterie.describe.names import name_clusters

    names = name_clusters(summaries)
    console = console or wide_console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True, expand=True)
    table.add_column("cluster", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("confidence", justify="right", no_wrap=True)
    table.add_column("name and keywords", ratio=1)
    table.add_column("texts nearest to its centre", ratio=2, no_wrap=True, overflow="ellipsis")
    for summary, name in zip(summaries[:most], names, strict=False):
        table.add_row(
            str(summary.id),
            f"{summary.size:,} ({summary.share:.0%})",
            "" if summary.confidence is None else f"{summary.confidence:.2f}",
            Text.assemble((name, "bold"), "\n", (", ".join(summary.keywords[:6]), "cyan")),
            Text("\n".join(_one_line(text) for text in summary.representatives)),
        )
    console.print(table)
    if len(summaries) > most:
        console.print(f"… and {len(summaries) - most} more clusters, all in clusters.json")


def wide_console() -> Console:
    """Return a console as wide as the terminal, or of a fixed width where the output goes to a file or a pipe."""
    from rich.console import Console

    console = Console()
    if console.is_terminal or os.environ.get("COLUMNS"):
        return console
    return Console(width=WIDTH_IN_A_PIPE)


def _one_line(text: str) -> str:
    return " ".join(text.split())
