"""``coterie``: the commands, and how errors become exit codes."""

from __future__ import annotations

import io
import logging
import os
import sys
from typing import Annotated

import typer

from coterie.cli import (
    augment,
    benchmark,
    compare,
    datasets,
    demo,
    doctor,
    evaluate,
    explore,
    fit,
    methods,
    plot,
    predict,
    report,
)
from coterie.errors import CoterieError
from coterie.version import __version__

app = typer.Typer(
    name="coterie",
    help="Cluster short texts, without labels. Nothing leaves this machine unless you ask for it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("fit")(fit.fit)
app.command("predict")(predict.predict)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("report")(report.report)
app.command("plot")(plot.plot)
app.command("explore")(explore.explore)
app.command("augment")(augment.augment)
app.command("methods")(methods.methods)
app.add_typer(datasets.app, name="datasets")
app.add_typer(benchmark.app, name="benchmark")
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every step to standard error.")] = False,
) -> None:
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)


def main() -> None:
    """Run; a user's mistake is one line on standard error and exit code 1."""
    # On a CPU torch's oneDNN keeps what it compiled for the last 1,024 sizes of batch: half a gigabyte for nothing.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except CoterieError as error:
        typer.echo(f"coterie: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:  # a full disk, a folder without permission
        typer.echo(f"coterie: {error}", err=True)
        sys.exit(1)
