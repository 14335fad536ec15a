"""Cluster the bundled sample: what ``coterie demo`` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coterie.api.fit import fit_model
from coterie.api.run import Run

SAMPLE = "support"
# A third of the default, and one round: a first look should not take long.
DEMO_EPOCHS = 3
# The twelve topics and a few more, as the README advises: an encoder for English separates other languages.
DEMO_CLUSTERS = 15


def fit_demo(
    output: Path, *, overwrite: bool, seed: int, device: str, progress: Callable[[str], object]
) -> tuple[Run, list[object]]:
    """Cluster the sample and write its run folder; return the run, and the sample's own topic of every row."""
    from coterie.datasets.loading import find_dataset
    from coterie.methods.build_method import build_method
    from coterie.methods.registry import DEFAULT_METHOD
    from coterie.runs.folder import check_free_for_run
    from coterie.runs.writing import FitRequest
    from coterie.text.reading import read_columns, read_corpus

    check_free_for_run(output, overwrite)
    messages = find_dataset(SAMPLE)
    assert messages is not None
    corpus = read_corpus(messages, text_column="text", id_column="id")
    columns = read_columns(messages.with_name("topics.csv"), ["id", "topic"])
    topic_of = {str(key): topic for key, topic in zip(columns["id"], columns["topic"], strict=True)}
    topics = [topic_of.get(str(key)) for key in corpus.row_ids]
    settings = {"rounds": 1, "training.max_epochs": DEMO_EPOCHS, "training.progress": True, "device": device}
    model = build_method(DEFAULT_METHOD, DEMO_CLUSTERS, seed, settings, {})
    request = FitRequest(DEFAULT_METHOD, f"the bundled sample {SAMPLE!r}")
    return fit_model(model, corpus, output, request, labels=topics, progress=progress), topics
