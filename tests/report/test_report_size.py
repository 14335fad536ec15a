"""A report of 20,000 texts is one file that can still be sent by mail."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coterie.report.html.content import build_report
from coterie.report.html.rendering import render_page
from coterie.runs.saved_run import SavedRun
from coterie.selection.training_verdict import TrainingVerdict
from coterie.text.corpus import as_corpus

N_TEXTS, LARGEST = 20_000, 8_000_000
LONG = "late parcel from the depot, still waiting for the courier and nobody answers the phone "
TEXTS = {
    "short": [f"late parcel {i} from the depot, still waiting for the courier" for i in range(N_TEXTS)],
    "long": [f"{i} {LONG * 8}" for i in range(N_TEXTS)],
    "chinese": [f"{i} {'包裹延误仍在等待快递员送货上门无人接听电话' * 20}" for i in range(N_TEXTS)],
    "markup": [f"{i} {'<' * 500}" for i in range(N_TEXTS)],
}


def _run(folder: Path, texts: list[str], n_clusters: int) -> SavedRun:
    """As a fit with training leaves it, with made-up vectors."""
    generator = np.random.default_rng(0)
    labels = np.arange(len(texts)) % n_clusters
    middles = generator.normal(size=(n_clusters, 16)).astype(np.float32)
    vectors = dict(zip(texts, middles[labels] + generator.normal(size=(len(texts), 16)).astype("f4"), strict=True))
    model: Any = SimpleNamespace(
        labels_=labels,
        confidence_=generator.uniform(size=len(texts)),
        center_distance_=generator.uniform(size=len(texts)),
        cluster_centers_=middles,
        initial_labels_=(labels + generator.integers(0, 2, len(texts))) % n_clusters,
        seed_=0,
        transform=lambda asked: np.array([vectors[text] for text in asked]),
        cluster_topics=lambda: None,
    )
    steps = [{"stage": "train", "epoch": 1, "step": i, "loss": 1.0, "contrast": 0.5} for i in range(3_000)]
    about = {
        "method": "sccl",
        "settings": {"encoder": "some-encoder"},
        "seed": 0,
        "input": {"source": "texts.csv", "kept": []},
        "notes": [],
        "versions": {"coterie": "0"},
        "training_verdict": TrainingVerdict.unknown("Nothing was judged.").to_dict(),
        "history": {"steps": steps},
    }
    return SavedRun.of_fit(folder, about, as_corpus(texts), model)


@pytest.mark.parametrize(("kind", "n_clusters"), [("short", 20), ("long", 20), ("chinese", 1_000), ("markup", 20)])
def test_twenty_thousand_texts_are_under_eight_megabytes(kind: str, n_clusters: int, tmp_path: Path) -> None:
    data = build_report(
        _run(tmp_path, TEXTS[kind], n_clusters), kind="pca", labels=[f"label {i % 12}" for i in range(N_TEXTS)]
    )
    size = len(render_page(data.content).encode())
    assert data.content["points"]["count"] == len(data.content["points"]["texts"]) == N_TEXTS
    assert size < LARGEST, size
    # Nothing is cut that need not be.
    shown = data.content["points"]["texts"]
    if kind == "short":
        assert shown == TEXTS[kind]
    else:
        assert all(len(text) >= 40 and text.endswith("…") for text in shown) and size > 3_500_000
