"""The estimate before a long job: what it reads from its trial, and that the method is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import topic_texts
from torch import Tensor

from coterie import AECL, DECCRL, SCCL, Coterie, FrozenEncoder, TfIdf, TrainingConfig
from coterie.encoders.packing import PackedBatch
from coterie.encoders.transformer import TransformerEncoder
from coterie.formatting import duration
from coterie.methods import cost_estimate as estimating
from coterie.methods.auto import method as auto
from coterie.methods.cost_estimate import estimate, worth_estimating
from coterie.text.corpus import as_corpus
from coterie.training.steps import Steps

TEXTS = topic_texts(300)[0]
CORPUS = as_corpus(TEXTS)


def _sccl(folder: Path, **settings: Any) -> SCCL:
    return SCCL(3, encoder=str(folder), device="cpu", training=TrainingConfig(batch_size=16, **settings))


def test_the_method_is_left_alone(tiny_encoder: Path) -> None:
    model = _sccl(tiny_encoder, max_epochs=1)
    before = model.settings()
    found = estimate(model, CORPUS)
    assert found is not None and found.seconds > 0 and found.memory > 10**7 and found.device_memory == 0
    assert model.settings() == before
    assert "labels_" not in vars(model)
    fresh = _sccl(tiny_encoder, max_epochs=1).fit(TEXTS)
    assert (model.fit(TEXTS).labels_ == fresh.labels_).all()


@pytest.fixture
def work_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Let time pass with the texts that the encoder reads, a millisecond each, and with nothing else."""
    seconds = 0.0
    forward = TransformerEncoder.forward_packed

    def counted(encoder: TransformerEncoder, packed: PackedBatch, *rest: Any) -> Tensor:
        nonlocal seconds
        seconds += 1e-3 * (len(packed.offsets) - 1)
        return forward(encoder, packed, *rest)

    monkeypatch.setattr(TransformerEncoder, "forward_packed", counted)
    monkeypatch.setattr(time, "perf_counter", lambda: seconds)
    return lambda: seconds


@pytest.mark.usefixtures("work_clock")
def test_four_times_the_epochs_take_nearly_four_times_as_long(tiny_encoder: Path) -> None:
    short, long = (estimate(_sccl(tiny_encoder, max_epochs=n, max_steps=None), CORPUS) for n in (400, 1600))
    assert short is not None and long is not None
    assert 3.9 < long.seconds / short.seconds < 4
    assert long.parts["training"] == pytest.approx(4 * short.parts["training"], rel=0.01)


@pytest.mark.parametrize("trial_batch", [128, 8])
def test_the_estimate_is_near_the_truth(
    trial_batch: int, tiny_encoder: Path, work_clock: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(estimating.TRIAL_BATCH, "cpu", trial_batch)
    model = _sccl(tiny_encoder, max_epochs=6, max_steps=None, check_every=0)
    found = estimate(model, CORPUS)
    began = work_clock()
    model.fit(CORPUS)
    assert found is not None
    assert found.seconds == pytest.approx(work_clock() - began, rel=0.02)


def test_every_stage_counts(tiny_encoder: Path) -> None:
    def planned(**lengths: int) -> list[float]:
        model = AECL(3, encoder=str(tiny_encoder), device="cpu", **lengths)
        model.set_params(training__batch_size=16, training__max_steps=None, training__max_epochs=20)
        trial = estimating._Trial(model, list(TEXTS[:60]), "cpu", 3200)
        assert trial.training_seconds() > 0
        assert isinstance(trial._method, AECL)
        return trial._method.planned_steps(3200, model.training)

    assert planned(stage_1=5, stage_2=15, stage_3=30) == pytest.approx([400, 1200, 2400])
    assert planned(stage_1=1, stage_2=0, stage_3=1) == pytest.approx([2000, 2000])


def test_what_goes_on_after_the_training_counts(tiny_encoder: Path) -> None:
    def seconds(steps: int) -> float:
        model = DECCRL(3, encoder=str(tiny_encoder), device="cpu", topic_steps=steps, min_df=1, max_df=1.0)
        model.set_params(training__max_steps=1, training__batch_size=16)
        found = estimate(model, CORPUS)
        assert found is not None
        return found.seconds

    assert seconds(200_000) > 10 * seconds(20)


def test_what_is_assigned_afterwards_counts(tiny_encoder: Path) -> None:
    whole, part = (estimate(_sccl(tiny_encoder, max_epochs=2), CORPUS, sample) for sample in (None, 100))
    assert whole is not None and part is not None
    assert "assigning_others" not in whole.parts
    assert part.parts["assigning_others"] > 0


def test_a_trial_that_sees_nothing_to_learn_is_trained_all_the_same(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard may find no structure in the few texts of a trial where there is some in all of them."""
    monkeypatch.setattr(auto, "missing_structure", lambda *_: "no structure was found")
    model = Coterie(3, encoder=str(tiny_encoder), device="cpu", training=TrainingConfig(batch_size=64, max_epochs=2))
    found = estimate(model, CORPUS)
    assert found is not None and model.guard
    alone = estimate(model.set_params(start="kmeans"), CORPUS)
    assert alone is not None and found.parts["training"] > 0 and alone.parts["training"] > 0
    assert any("no structure" in note for note in model.fit(CORPUS).notes_)


def test_who_is_quick_needs_none(tiny_encoder: Path) -> None:
    frozen = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu")
    assert estimate(TfIdf(3), CORPUS) is None
    assert not worth_estimating(TfIdf(3), CORPUS)
    assert not worth_estimating(frozen, CORPUS)
    assert estimate(frozen, CORPUS) is not None


def test_worth_it(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = len(CORPUS.distinct)
    monkeypatch.setattr(estimating, "FEWEST_TO_TRAIN_ON_CPU", n)
    assert worth_estimating(_sccl(tiny_encoder), CORPUS)
    assert not worth_estimating(_sccl(tiny_encoder), CORPUS, sample=n - 1)
    monkeypatch.setattr(estimating, "FEWEST_TO_EMBED_ON_CPU", n)
    assert worth_estimating(FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu"), CORPUS)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (41.4, "41 s"), (89, "89 s"), (95, "2 min"), (3600, "60 min"), (6000, "1 h 40 min")],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_ctrl_c_in_the_trial_is_not_swallowed(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlucky(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Steps, "take", unlucky)
    with pytest.raises(KeyboardInterrupt):
        estimate(_sccl(tiny_encoder), CORPUS)


def test_a_trial_that_fails_is_no_estimate(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: Any) -> Any:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Steps, "take", too_large)
    assert estimate(_sccl(tiny_encoder), CORPUS) is None


def test_a_language_model_is_not_asked_for_a_trial(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "FEWEST_TO_TRAIN_ON_CPU", 10)
    assert worth_estimating(_sccl(tiny_encoder), CORPUS)
    slow = SCCL(3, encoder=str(tiny_encoder), device="cpu", augmentation="contextual")
    assert not worth_estimating(slow, CORPUS)


def test_a_trial_is_not_ended_by_the_guard(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the few texts of a trial the guard may find nothing to learn; the fit would train all the same."""
    guards: list[bool] = []
    learn = Coterie._learn

    def watched(self: Coterie, *given: Any) -> Any:
        guards.append(self.guard)
        return learn(self, *given)

    monkeypatch.setattr(Coterie, "_learn", watched)
    training = TrainingConfig(max_steps=2, batch_size=8)
    model = Coterie(3, encoder=str(tiny_encoder), rounds=1, training=training, device="cpu")
    found = estimate(model, as_corpus(TEXTS[:24]))
    assert guards == [False] and model.guard
    assert found is not None and found.parts["training"] > 0
