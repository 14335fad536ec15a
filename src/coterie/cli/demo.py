"""``coterie demo``: cluster the bundled sample."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from coterie.cli.options import Device, OverwriteRun, RunOutput, Seed


def demo(
    output: RunOutput = Path("demo-run"),
    overwrite: OverwriteRun = False,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Cluster the bundled sample: 770 messages to a support desk, 12 topics.

    **Example**

    `coterie demo -o demo-run`
    """
    import coterie
    from coterie.api.demo import DEMO_CLUSTERS, fit_demo
    from coterie.api.reporting import REPORT_FILE
    from coterie.cli.fit import print_progress, print_run

    began = time.perf_counter()
    run, topics = fit_demo(output, overwrite=overwrite, seed=seed, device=device, progress=print_progress)
    print_run(run, time.perf_counter() - began, report=False)
    scores = coterie.evaluate(topics, run.labels.tolist())
    typer.echo(
        f"Against the sample's own 12 topics, which were not used: accuracy {100 * scores.accuracy:.0f} %, "
        f"NMI {100 * scores.nmi:.0f} % ({DEMO_CLUSTERS} clusters: an encoder for English separates other languages)."
    )
    typer.echo(
        f"Open {output / REPORT_FILE} in a browser: a map of the messages, the clusters, and what training changed."
    )
    typer.echo(
        f"Now your own texts: coterie fit FILE.csv -k 20 -o run; new texts: coterie predict {output} NEW.csv -o OUT.csv"
    )
