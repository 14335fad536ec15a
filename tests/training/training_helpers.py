"""A small corpus, a small encoder and small objectives for the tests of the training loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from conftest import topic_texts
from torch import Tensor, nn

from coterie.clustering.kmeans import kmeans
from coterie.encoders.packed_bert import Layer
from coterie.encoders.packing import PackedBatch
from coterie.encoders.transformer import TransformerEncoder
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training.callbacks import Callback
from coterie.training.config import TrainingConfig
from coterie.training.objective import ORIGINAL, Batch, LossTerms, Objective, Stage
from coterie.training.stopping import LabelWatch
from coterie.training.trainer import Trainer
from coterie.training.views import Views

PAIR = ("augmented_1", "augmented_2")


class MeanGap(Objective):
    """Plain means over the texts: the gap to a trained point, and between the views."""

    def __init__(self, dimension: int, views: tuple[str, ...] = (ORIGINAL, *PAIR)) -> None:
        super().__init__()
        self.views = views
        self.point = nn.Parameter(torch.linspace(-1, 1, dimension))
        self.batches: list[Batch] = []

    def loss(self, batch: Batch) -> LossTerms:
        self.batches.append(batch)
        gap = (batch.embeddings[0] - self.point).square().sum(-1).mean()
        apart = sum(
            ((a - b).square().sum(-1).mean() for a, b in zip(batch.embeddings, batch.embeddings[1:], strict=False)),
            gap * 0,
        )
        return LossTerms(gap + 0.1 * apart, gap=gap, apart=apart)


@dataclass
class Recorder(Callback):
    """Records the events of a callback."""

    stages: list[tuple[str, int]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    interrupt_at: int | None = None

    def on_stage_start(self, name: str, total_steps: int) -> None:
        self.stages.append((name, total_steps))

    def on_step(self, step: int, terms: dict[str, torch.Tensor]) -> None:
        self.steps.append(step)
        if step == self.interrupt_at:
            raise KeyboardInterrupt

    def on_check(self, label_change: float) -> None:
        self.changes.append(label_change)

    def on_stage_end(self, reason: str) -> None:
        self.ends.append(reason)


@dataclass
class Run:
    """Everything about one training run."""

    encoder: TransformerEncoder
    trainer: Trainer
    objective: MeanGap
    texts: list[str]

    def go(self, stages: Sequence[Stage] | None = None) -> Run:
        self.trainer.run([Stage("only", self.objective)] if stages is None else stages)
        return self

    def parameters(self) -> list[np.ndarray]:
        modules = (self.encoder, self.objective)
        return [p.detach().numpy().copy() for module in modules for p in module.parameters() if p.requires_grad]


def spy_on_passes(encoder: TransformerEncoder, seen: Callable[[int], object]) -> None:
    """Tell ``seen`` the number of texts of every pass through the encoder, padded or packed."""
    real = encoder.forward_packed

    def packed(texts: PackedBatch, layers: list[Layer], *fused: Any) -> Tensor:
        seen(texts.n_texts)
        return real(texts, layers, *fused)

    encoder.forward_packed = packed  # type: ignore[method-assign]
    encoder.register_forward_hook(lambda module, given, result: seen(len(given[0])))


def without_dropout(encoder: TransformerEncoder) -> TransformerEncoder:
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return encoder


def prepare(
    folder: Path,
    n: int = 30,
    *,
    dropout: bool = True,
    seed: int = 0,
    views: tuple[str, ...] = (ORIGINAL, *PAIR),
    counts: np.ndarray | None = None,
    callbacks: Sequence[Callback] = (),
    augmenter: Augmenter | None = None,
    **settings: Any,
) -> Run:
    """A trainer over ``n`` texts on three topics, in float32, without a label check unless asked for."""
    config = TrainingConfig(**{"batch_size": 10, "max_epochs": 2, "precision": "float32", "check_every": 0, **settings})
    encoder = TransformerEncoder.load(folder)
    if not dropout:
        without_dropout(encoder)
    texts, _ = topic_texts(n)
    tokens = encoder.tokenize(texts)
    weights = np.ones(n, dtype=np.int64) if counts is None else counts
    start = kmeans(encoder.encode_tokens(tokens).numpy(), 3, weights=weights)
    watch = LabelWatch(start.labels, start.centers, weights, config.patience)
    augmenters = {name: augmenter or WordDeletion(0.3) for name in PAIR}
    corpus = Views(encoder, texts, tokens, augmenters, seed)
    trainer = Trainer(encoder, corpus, tokens, weights, config, watch, seed, callbacks)
    return Run(encoder, trainer, MeanGap(encoder.dimension, views), texts)
