"""How near augmented texts lie to their originals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from coterie import SCCL, BagOfWords
from coterie.benchmark.augmentation_cosines import BINS, augmented_cosines
from coterie.benchmark.catalogue import find_figure, find_row
from coterie.benchmark.figures import FigureData
from coterie.benchmark.rows import PROTOCOL
from coterie.benchmark.sets import find_set
from coterie.benchmark.store import Job, Store
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.text.corpus import as_corpus

TEXTS = [f"the parcel number {number} came late and was open" for number in range(30)]


def test_every_text_is_counted_once(tiny_encoder: Path) -> None:
    model = SCCL(3, encoder=str(tiny_encoder), augmentation="word_deletion", device="cpu")
    counts = augmented_cosines(model, as_corpus([*TEXTS, *TEXTS[:5]]))
    assert len(counts) == BINS and sum(counts) == 30
    assert not hasattr(model, "encoder_")  # the model is still to be fitted


def test_texts_that_stay_as_they_are(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WordDeletion, "augment", lambda self, texts, generator: list(texts))
    counts = augmented_cosines(SCCL(3, encoder=str(tiny_encoder), device="cpu"), as_corpus(TEXTS))
    assert counts == [0] * (BINS - 1) + [30]


def test_methods_without_views_have_none(tiny_encoder: Path) -> None:
    assert augmented_cosines(BagOfWords(3), as_corpus(TEXTS)) == []
    assert augmented_cosines(SCCL(3, encoder=str(tiny_encoder), augmentation="virtual"), as_corpus(TEXTS)) == []


def test_the_figure_shows_shares(tmp_path: Path) -> None:
    store, spec = Store(tmp_path), find_figure("sccl-5-cosines")
    job = Job(find_row("sccl"), find_set("stackoverflow"), 0)
    record: dict[str, Any] = {"row": "sccl", "dataset": "stackoverflow", "protocol": PROTOCOL, "scores": {}}
    store.write(job.name, {**record, "augmented_cosines": [0] * (BINS - 2) + [1, 3]})
    figure = Figure()
    spec.plot(FigureData(store, spec.rows, spec.sets), figure)
    assert [len(axes.patches) for axes in figure.axes] == [0, 1]
    assert figure.axes[1].patches[0].get_data().values[-2:].tolist() == [0.25, 0.75]
