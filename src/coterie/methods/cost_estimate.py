"""Estimate the time and memory of a fit from a short trial of the same fit on this machine."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie.clustering.kmeans import kmeans
from coterie.methods.base import ClusteringMethod
from coterie.methods.encoder_method import EncoderMethod
from coterie.methods.trained import TrainedMethod, n_view_workers
from coterie.text.corpus import Corpus

# Texts of a trial. On a CPU the time is proportional to the texts; a GPU needs several real batches, since every epoch
# has a fixed cost.
TRIAL_TEXTS = {"cpu": 256, "cuda": 4_800}
# Texts per step of a trial; a GPU gets the real batch size.
TRIAL_BATCH = {"cpu": 128}
# Epochs of each stage in a trial; the last is measured, the others warm up.
TRIAL_EPOCHS = {"cpu": 2, "cuda": 4}
# Texts that are embedded to measure the speed of embedding.
EMBEDDING_TEXTS = {"cpu": 512, "cuda": 20_000}
# Rows that are clustered to measure the speed of k-means.
CLUSTERING_ROWS = {"cpu": 2_000, "cuda": 100_000}
# The parameter with the steps of a part after the training; its length does not depend on the corpus.
LATER_STEPS = "topic_steps"
# Steps of that part in a trial.
TRIAL_LATER_STEPS = 20
# The parameter that lets a method skip the training; a trial switches it off, since it has few texts.
GUARD = "guard"
# Fewest distinct texts for which a trial is worth its time, for a method that trains on a CPU.
FEWEST_TO_TRAIN_ON_CPU = 2_000
# Fewest distinct texts for a trial of a method that only embeds on a CPU.
FEWEST_TO_EMBED_ON_CPU = 10_000
# Fewest distinct texts for a trial on a GPU, which trains on fewer texts in less than a minute.
FEWEST_ON_GPU = 50_000
# Seconds per row for reading, describing, writing and the report, measured on a million rows
# (benchmarks/results/speed/whole_job_auto.json).
SECONDS_PER_ROW = 50e-6


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Estimate:
    """The expected cost of a fit.

    Attributes
    ----------
    seconds:
        Duration of the fit without an early stop.
    memory, device_memory:
        Peak memory of the process and of the GPU (0 without one), in bytes.
    trial_seconds:
        Duration of the trial.
    parts:
        ``seconds`` by phase.
    """

    seconds: float
    memory: int
    device_memory: int
    trial_seconds: float
    parts: dict[str, float]


def worth_estimating(method: ClusteringMethod, corpus: Corpus, sample: int | None = None) -> bool:
    """Return whether a fit takes long enough to be worth a trial of some seconds."""
    if not isinstance(method, EncoderMethod) or not method._can_be_tried:
        return False
    if isinstance(method, TrainedMethod) and any(each.slow for each in method._augmenters().values()):
        return False  # a trial would call a language model, where most of the time is spent
    n_all = len(corpus.distinct)
    if _device(method) != "cpu":
        return n_all >= FEWEST_ON_GPU
    if not isinstance(method, TrainedMethod):
        return n_all >= FEWEST_TO_EMBED_ON_CPU
    sample = method.usual_sample if sample is None else sample
    return n_all >= FEWEST_TO_TRAIN_ON_CPU if sample is None else min(sample, n_all) >= FEWEST_TO_TRAIN_ON_CPU


def estimate(method: ClusteringMethod, corpus: Corpus, sample: int | None = None) -> Estimate | None:
    """Estimate the cost of ``method.fit(corpus, sample=sample)``.

    ``None`` for methods without an encoder, which are quick, and for networks over fixed vectors. The trial fits a
    copy on a few of the texts; ``method`` itself is not changed.
    """
    if not isinstance(method, EncoderMethod) or not method._can_be_tried:
        return None
    began = time.perf_counter()
    texts = corpus.distinct
    n_all = len(texts)
    sample = method.usual_sample if sample is None else sample
    n = n_all if sample is None else min(sample, n_all)
    device = _device(method)
    some = _evenly(texts, max(min(n, TRIAL_TEXTS.get(device, 256)), 2 * method.n_clusters))
    try:
        trial = _Trial(method, some, device, n)
    except RuntimeError as error:  # for example too little memory, which the fit itself may report
        logger.info("no estimate: %s", error)
        return None
    tokenizing, embedding = trial.embedding_seconds(_evenly(texts, min(n, EMBEDDING_TEXTS.get(device, 512))))
    clustering = trial.clustering_seconds()
    parts = {
        "tokenizing": n * tokenizing,
        "embedding": n * embedding,
        "clustering": clustering,
        "reading_and_writing": len(corpus) * SECONDS_PER_ROW,
    }
    if n < n_all:
        others = _evenly(texts, min(n_all - n, EMBEDDING_TEXTS.get(device, 512)))
        parts["assigning_others"] = (n_all - n) * trial.assigning_seconds(others)
    if isinstance(method, TrainedMethod):
        # Embedding and clustering happen before and after the training.
        parts["embedding"] += n * embedding
        parts["clustering"] += clustering
        parts["training"] = trial.training_seconds()
    width = trial.dimension
    # Vectors before and after training and some bytes per row; texts outside the sample are embedded in blocks.
    extra = 5 * n * width * 2 + n_all * 200
    on_device = trial.device_memory + 3 * n * width * 4 if device == "cuda" else 0
    memory = _resident() + extra
    return Estimate(sum(parts.values()), memory, on_device, time.perf_counter() - began, parts)


class _Trial:
    """A small fit and its measurements."""

    def __init__(self, method: EncoderMethod, texts: list[str], device: str, n_texts: int) -> None:
        import torch

        self._real, self._method = method, clone(method)
        self._n_texts, self._n_trial, self._device = n_texts, len(texts), device
        if isinstance(self._method, TrainedMethod):
            self._batch = min(method.training.batch_size_for(n_texts), TRIAL_BATCH.get(device, sys.maxsize), len(texts))
            self._shorten(self._method)
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        self._method.fit(texts)
        if self._method.history_.interrupted:
            raise KeyboardInterrupt  # the trainer would go on with the model so far; a trial must end
        self.device_memory = torch.cuda.max_memory_allocated() if device == "cuda" else 0
        self.dimension = int(self._method.cluster_centers_.shape[1])

    def _shorten(self, method: TrainedMethod) -> None:
        method._trial_epochs = TRIAL_EPOCHS.get(self._device, 2)
        method.set_params(
            training__progress=False,
            training__snapshot_every=0,
            training__batch_size=self._batch,
            training__max_steps=sys.maxsize,
            training__max_epochs=None,
            # Every check of the labels is made, and none ends the trial.
            training__patience=1,
            training__tolerance=0,
        )
        if LATER_STEPS in method.get_params(deep=False):
            method.set_params(**{LATER_STEPS: TRIAL_LATER_STEPS})
        if GUARD in method.get_params(deep=False):
            method.set_params(**{GUARD: False})

    def embedding_seconds(self, texts: list[str]) -> tuple[float, float]:
        """Return the seconds per text of tokenising and of embedding."""
        encoder, dtype = self._method.encoder_, self._method._quick_dtype(self._n_texts)
        encoder.encode(texts[: max(1, len(texts) // 4)], dtype)
        began = time.perf_counter()
        tokens = encoder.tokenize(texts)
        tokenized = time.perf_counter()
        self._vectors = encoder.encode_tokens(tokens, dtype).cpu().numpy()
        return (tokenized - began) / len(texts), (time.perf_counter() - tokenized) / len(texts)

    def assigning_seconds(self, texts: list[str]) -> float:
        """Return the seconds per text of assigning, near ties included."""
        self._method.assign(texts[: max(1, len(texts) // 4)])
        began = time.perf_counter()
        self._method.assign(texts)
        return (time.perf_counter() - began) / len(texts)

    def clustering_seconds(self) -> float:
        """Return the seconds of k-means on all texts of the fit."""
        import torch

        rows = max(min(self._n_texts, CLUSTERING_ROWS.get(self._device, 2_000)), self._method.n_clusters)
        generator = np.random.default_rng(0)
        # With noise: repeated rows would be too easy to cluster.
        sampled = self._vectors[generator.integers(len(self._vectors), size=rows)]
        noise = generator.normal(scale=0.5 * sampled.std(), size=sampled.shape)
        features = torch.from_numpy((sampled + noise).astype(np.float32)).to(self._method.encoder_.device)
        began = time.perf_counter()
        kmeans(features, self._method.n_clusters)
        return (time.perf_counter() - began) * self._n_texts / rows

    def training_seconds(self) -> float:
        """Return the seconds of all stages on the real corpus, with what precedes and follows them."""
        trial, real = self._method, self._real
        assert isinstance(trial, TrainedMethod) and isinstance(real, TrainedMethod)
        growth = self._n_texts / self._n_trial
        in_a_step = real.training.batch_size_for(self._n_texts) / self._batch
        views_ahead = real.training.fresh_views and n_view_workers(trial.encoder_.device, self._n_texts) > 0
        later = real.get_params(deep=False).get(LATER_STEPS)
        seconds = trial.timings_.get("head", 0.0) * (growth if later is None else later / TRIAL_LATER_STEPS)
        # Choosing among initial clusterings; k-means alone is counted as clustering.
        seconds += trial.timings_.get("starts", 0.0) * growth
        seconds += trial.history_.recording_seconds
        for cost, steps in zip(trial.history_.costs, trial.planned_steps(self._n_texts, real.training), strict=False):
            last = cost["last_epoch"]
            seconds += steps * in_a_step * last["training"] / max(1, last["steps"])
            epochs = steps / real.training.steps_per_epoch(self._n_texts)
            views = 0.0 if views_ahead else epochs * last["views"]
            # No check of the labels follows the last epoch of a stage, neither in the trial nor in the fit.
            looks = max(0, math.ceil(epochs) - 1) * cost["looks"] / max(1, cost["epochs"] - 1)
            seconds += growth * (views + looks + math.ceil(epochs) * last["refresh"])
        return seconds


def _device(method: EncoderMethod) -> str:
    from coterie.encoders.device import resolve_device

    return resolve_device(method.device).type


def _evenly(texts: Any, count: int) -> list[str]:
    return [texts[i] for i in np.linspace(0, len(texts) - 1, min(count, len(texts))).astype(int)]


def _resident() -> int:
    """Return the memory of this process in bytes; 0 where the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
