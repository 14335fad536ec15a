"""``coterie demo``: cluster the bundled sample."""

from __future__ import annotations

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
    from coterie.cli.fit import run
    from coterie.cli.report import REPORT_FILE, add_report, labels_of
    from coterie.datasets.loading import find_dataset
    from coterie.methods.building import build_method
    from coterie.methods.registry import DEFAULT_METHOD
    from coterie.metrics.external.run_evaluation import score_assignments
    from coterie.runs.folder import check_free_for_run
    from coterie.text.reading import read_corpus

    check_free_for_run(output, overwrite)
    messages = find_dataset("support")
    assert messages is not None
    corpus = read_corpus(messages, text_column="text", id_column="id")
    # One round and a third of the default epochs: a first look should not take long.
    settings = {"rounds": 1, "training.max_epochs": DEMO_EPOCHS, "training.progress": True, "device": device}
    model = build_method(DEFAULT_METHOD, DEMO_CLUSTERS, seed, settings, {})
    made = run(model, DEFAULT_METHOD, corpus, "the bundled sample 'support'", output, quiet=False, report=False)
    topics = messages.with_name("topics.csv")
    scores = score_assignments(output / "assignments.csv", topics, "topic", "id")
    add_report(made, labels_of(output / "assignments.csv", topics, "topic", "id"))
    typer.echo(
        f"Against the sample's own 12 topics, which were not used: accuracy {100 * scores.accuracy:.0f} %, "
        f"NMI {100 * scores.nmi:.0f} % ({DEMO_CLUSTERS} groups: an encoder for English keeps German and Spanish apart)."
    )
    typer.echo(
        f"Open {output / REPORT_FILE} in a browser: a map of the messages, the groups, and what training changed."
    )
    typer.echo(
        f"Now your own texts: coterie fit FILE.csv -k 20 -o run; new texts: coterie predict {output} NEW.csv -o OUT.csv"
    )


DEMO_EPOCHS = 3
# The twelve topics and a few more, as the README advises: an encoder for English keeps German and Spanish apart.
DEMO_CLUSTERS = 15
