"""Recorded steps against plain ones: without a graph on any machine, and with graphs on CUDA."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from torch import Tensor
from training_helpers import PAIR, MeanGap, Run, prepare, without_dropout

import coterie.encoders.transformer as transformer_module
import coterie.training.trainer as trainer_module
from coterie import AECL, RSTC, SCCL, TrainingConfig
from coterie.encoders.transformer import TransformerEncoder
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training.objective import ORIGINAL, Batch, LossTerms, Stage
from coterie.training.recorded import RecordedSteps, can_record, window_step
from coterie.training.recording import PLAIN_STEPS, StepRecorder
from coterie.training.trainer import Trainer
from coterie.training.views import Views

RATES = {"learning_rate": 1e-3, "head_learning_rate": 1e-2}


def on_host(monkeypatch: pytest.MonkeyPatch) -> list[RecordedSteps]:
    """Have all steps that a GPU would record taken in the same form here, without a graph; returns the steps."""
    taken: list[RecordedSteps] = []
    real = can_record

    def run(steps: RecordedSteps, flat: Tensor, shape: tuple[int, int, int]) -> Any:
        taken.append(steps)
        return steps._whole_step(flat, shape)

    def wherever(objective: Any, steps: Any) -> bool:
        encoder = SimpleNamespace(device=torch.device("cuda"), packs=steps.encoder.packs)
        return real(objective, SimpleNamespace(encoder=encoder, config=steps.config))  # type: ignore[arg-type]

    monkeypatch.setattr(RecordedSteps, "_run", run)
    # What a GPU drops with; a CPU's own way reads a seed.
    monkeypatch.setattr("coterie.encoders.packed_bert.dropout", torch.nn.functional.dropout)
    monkeypatch.setattr(trainer_module, "can_record", wherever)
    return taken


@pytest.fixture
def plain_descent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradient descent in place of Adam, whose steps blow rounding noise in a zero gradient up to full size."""
    monkeypatch.setattr(trainer_module.torch.optim, "Adam", lambda groups, **_: torch.optim.SGD(groups))


@pytest.fixture(scope="module")
def undropped(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny encoder without dropout."""
    folder = tmp_path_factory.mktemp("recorded") / "tiny"
    shutil.copytree(tiny_encoder, folder)
    settings = json.loads((folder / "config.json").read_text())
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps({**settings, **still}))
    return folder


def _prepared(folder: Path, **settings: Any) -> Run:
    run = prepare(folder, **{"dropout": False, "max_epochs": 3, **RATES, **settings})
    run.objective.recordable = True
    return run


def _both(monkeypatch: pytest.MonkeyPatch, folder: Path, **settings: Any) -> tuple[Run, Run, list[RecordedSteps]]:
    """The same run in plain and in recorded steps."""
    plain = _prepared(folder, **settings).go()
    with monkeypatch.context() as patched:
        taken = on_host(patched)
        recorded = _prepared(folder, **settings).go()
    assert len(taken) == len(recorded.trainer.history.steps) == len(plain.trainer.history.steps) > 0
    return plain, recorded, taken


def _assert_equal_terms(first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]], tolerance: float) -> None:
    assert [set(record) for record in first] == [set(record) for record in second]
    for ours, theirs in zip(first, second, strict=True):
        for name, value in ours.items():
            expected = value if isinstance(value, str) else pytest.approx(value, abs=tolerance, rel=tolerance)
            assert theirs[name] == expected, name


def _assert_equal_parameters(first: list[np.ndarray], second: list[np.ndarray], start: list[np.ndarray]) -> None:
    assert len(first) == len(second) > 20
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=0)
    # They were trained far enough for a difference to show.
    assert max(float(np.abs(a - b).max()) for a, b in zip(first, start, strict=True)) > 1e-3


# --- The same steps ---


@pytest.mark.parametrize("views", [(ORIGINAL, *PAIR), (ORIGINAL,), (ORIGINAL, ORIGINAL), (PAIR[1], ORIGINAL, PAIR[0])])
def test_losses_and_parameters_are_those_of_plain_steps(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, plain_descent: None, views: tuple[str, ...]
) -> None:
    start = _prepared(tiny_encoder, views=views).parameters()
    plain, recorded, _ = _both(monkeypatch, tiny_encoder, views=views)
    _assert_equal_terms(plain.trainer.history.steps, recorded.trainer.history.steps, 1e-5)
    _assert_equal_parameters(plain.parameters(), recorded.parameters(), start)


def test_clipping_is_part_of_a_recorded_step(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, plain_descent: None
) -> None:
    settings = {"max_grad_norm": 0.5, "learning_rate": 0.1, "head_learning_rate": 0.1}
    start = _prepared(tiny_encoder).parameters()
    plain, recorded, _ = _both(monkeypatch, tiny_encoder, **settings)
    _assert_equal_parameters(plain.parameters(), recorded.parameters(), start)
    _, unclipped, _ = _both(monkeypatch, tiny_encoder, **{**settings, "max_grad_norm": None})
    assert not np.allclose(unclipped.parameters()[-1], recorded.parameters()[-1], atol=1e-3)


def test_a_batch_is_the_same(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, weights and embeddings of every view in every epoch; the encoder stands still."""
    counts = np.arange(1, 31) * 7 % 31 + 1
    still = {"learning_rate": 1e-30, "head_learning_rate": 1e-30, "counts": counts}
    plain, recorded, _ = _both(monkeypatch, tiny_encoder, **still)
    assert len(recorded.objective.batches) == 9
    for ours, theirs in zip(recorded.objective.batches, plain.objective.batches, strict=True):
        assert torch.equal(ours.rows, theirs.rows)
        assert ours.weights.tolist() == counts[ours.rows.numpy()].tolist()
        assert ours.precision == theirs.precision
        assert len(ours.embeddings) == len(theirs.embeddings) == 3
        for mine, yours in zip(ours.embeddings, theirs.embeddings, strict=True):
            torch.testing.assert_close(mine, yours, atol=1e-5, rtol=0)


class _WeightedGap(MeanGap):
    """Weighs the texts by how often they occur."""

    recordable = True

    def loss(self, batch: Batch) -> LossTerms:
        gap = ((batch.embeddings[0] - self.point).square().sum(-1) * batch.weights).sum() / batch.weights.sum()
        return LossTerms(gap, texts=batch.weights.sum())


def test_weights_reach_the_loss(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {}
    for name, counts in (("weighted", np.arange(1, 31)), ("even", np.ones(30, dtype=np.int64))):
        settings: dict[str, Any] = {"views": (ORIGINAL,), "counts": counts, "max_epochs": 1}
        runs = []
        for on_gpu in (False, True):
            with monkeypatch.context() as patched:
                if on_gpu:
                    on_host(patched)
                run = _prepared(tiny_encoder, **settings)
                run.go([Stage("only", _WeightedGap(run.encoder.dimension, (ORIGINAL,)))])
            runs.append(run.trainer.history)
            assert sum(run.trainer.history.term("texts")) == counts.sum()
        _assert_equal_terms(runs[0].steps, runs[1].steps, 1e-5)
        losses[name] = runs[1].term("loss")
    assert losses["weighted"] != pytest.approx(losses["even"], rel=1e-4)


def test_adam_takes_the_same_way(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, recorded, _ = _both(monkeypatch, tiny_encoder)
    _assert_equal_terms(plain.trainer.history.steps, recorded.trainer.history.steps, 2e-4)
    assert recorded.trainer.history.term("loss")[-1] < recorded.trainer.history.term("loss")[0]


# --- Methods ---


METHODS: dict[str, tuple[type[SCCL] | type[AECL] | type[RSTC], dict[str, Any]]] = {
    "sccl": (SCCL, {}),
    "sccl virtual": (SCCL, {"augmentation": "virtual"}),
    "sccl sequential": (SCCL, {"variant": "sequential"}),
    "sccl alternative_1": (SCCL, {"variant": "alternative_1"}),
    "sccl alternative_2": (SCCL, {"variant": "alternative_2"}),
    "aecl": (AECL, {"stage_1": 1, "stage_2": 1, "stage_3": 1, "threshold": 0.35, "augmentation": "word_deletion"}),
    "aecl virtual": (AECL, {"stage_1": 1, "stage_2": 1, "stage_3": 1, "augmentation": "virtual"}),
    "aecl confidence": (AECL, {"stage_1": 0, "stage_2": 0, "stage_3": 1, "contrast": "confidence"}),
    "rstc": (RSTC, {"contrast_epochs": 1, "kmeans_epochs": 1, "transport_epochs": 1}),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_learns_the_same(
    undropped: Path, monkeypatch: pytest.MonkeyPatch, plain_descent: None, name: str
) -> None:
    kind, settings = METHODS[name]
    texts, _ = topic_texts(60)
    epochs = sum(value for value in settings.values() if isinstance(value, int)) or 1
    config = {"batch_size": 12, "max_epochs": epochs, "max_steps": None, "precision": "float32", "check_every": 0}
    # The others' loss is ten times as large; long steps would blow rounding up.
    rate = 1e-2 if kind is SCCL else 1e-3
    training = TrainingConfig(**config, learning_rate=rate, head_learning_rate=rate)

    def fit() -> Any:
        return kind(3, encoder=str(undropped), device="cpu", training=training, **settings).fit([*texts, *texts[:9]])

    plain = fit()
    taken = on_host(monkeypatch)
    recorded = fit()
    assert len(taken) == len(recorded.history_.steps) == 5 * epochs
    _assert_equal_terms(plain.history_.steps, recorded.history_.steps, 1e-5)
    start = [each.detach().numpy() for each in TransformerEncoder.load(undropped).parameters()]
    ends = [[each.detach().numpy() for each in model.encoder_.parameters()] for model in (plain, recorded)]
    _assert_equal_parameters(ends[0], ends[1], start)


# --- Memory for tokens ---


@dataclass(frozen=True)
class _Growing(Augmenter):
    """Texts with more tokens the later they are drawn; a list that is shared counts the draws."""

    drawn: list[int]
    lengths: tuple[int, ...] = (1, 1, 11, 3)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.drawn.append(len(texts))
        times = self.lengths[(len(self.drawn) - 1) // 2 % len(self.lengths)]
        return [" ".join([text] * times) for text in texts]


def test_more_tokens_than_the_memory_holds_get_a_larger_one(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, plain_descent: None
) -> None:
    seen: list[tuple[int, int, Any]] = []
    real = RecordedSteps.start_epoch

    def start_epoch(steps: RecordedSteps, batches: Any) -> None:
        steps_before = steps._resident
        if steps_before is not None:
            steps._recorder = StepRecorder(steps._whole_step, steps.optimizer, torch.device("cpu"))
        real(steps, batches)
        resident, tokens = steps._resident, steps.views.tokens
        assert resident is not None
        assert torch.equal(resident.ids[: len(tokens.ids)], tokens.ids)
        assert torch.equal(resident.starts, tokens.starts) and torch.equal(resident.lengths, tokens.lengths)
        # A recording reads the memory it was made with: it is of no use for another.
        assert (steps._recorder is not None) is (resident is steps_before)
        seen.append((len(tokens.ids), len(resident.ids), resident.ids.data_ptr()))

    monkeypatch.setattr(RecordedSteps, "start_epoch", start_epoch)
    start = _prepared(tiny_encoder).parameters()
    runs = []
    for on_gpu in (False, True):
        with monkeypatch.context() as patched:
            if on_gpu:
                on_host(patched)
            runs.append(_prepared(tiny_encoder, max_epochs=4, augmenter=_Growing([])).go())
    plain, recorded = runs
    _assert_equal_terms(plain.trainer.history.steps, recorded.trainer.history.steps, 1e-5)
    _assert_equal_parameters(plain.parameters(), recorded.parameters(), start)
    sizes, rooms, addresses = zip(*seen, strict=True)
    assert sizes[2] > rooms[0]  # it did not fit
    assert rooms[0] == rooms[1] < rooms[2] == rooms[3]
    # Epochs that fit leave the memory where it is.
    assert addresses[0] == addresses[1] and addresses[2] == addresses[3]


def test_the_views_of_each_epoch_are_used(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_host(monkeypatch)
    run = _prepared(tiny_encoder, views=PAIR, max_epochs=3, learning_rate=1e-30, head_learning_rate=1e-30)
    texts_of: list[list[str]] = []
    real = run.trainer.views.resample

    def resample(names: Sequence[str], epoch: int, *rest: Any) -> None:
        real(names, epoch, *rest)
        texts_of.append(WordDeletion(0.3).augment(run.texts, np.random.default_rng((0, 0, epoch))))

    monkeypatch.setattr(run.trainer.views, "resample", resample)
    run.go()
    assert texts_of[0] != texts_of[1] != texts_of[2]
    for place, batch in enumerate(run.objective.batches):
        expected = run.encoder.encode([texts_of[place // 3][row] for row in batch.rows.tolist()])
        np.testing.assert_allclose(batch.embeddings[0].detach().numpy(), expected, atol=1e-5)


# --- The cost ---


@pytest.mark.parametrize("views", [(ORIGINAL,), (ORIGINAL, *PAIR)])
def test_padding_is_computed_over_real_tokens(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, views: tuple[str, ...]
) -> None:
    computed: list[int] = []
    real = transformer_module.run_packed

    def run_packed(model: Any, layers: Any, packed: Any, *rest: Any) -> Tensor:
        if model.training:
            computed.append(len(packed.ids))
        return real(model, layers, packed, *rest)

    monkeypatch.setattr(transformer_module, "run_packed", run_packed)
    on_host(monkeypatch)
    run = _prepared(tiny_encoder, views=views, max_epochs=1).go()
    # All texts of all views are used once an epoch.
    real_tokens = int(run.trainer.views.tokens.lengths_on_host.sum())
    assert len(computed) == 3 and all(size % 64 == 0 for size in computed)
    assert run.trainer.history.padding == pytest.approx(sum(computed) / real_tokens)
    assert run.trainer.history.padding > 1


@pytest.mark.parametrize(
    ("tokens", "step"),
    [(1, 1), (64, 1), (63 * 64, 1), (64 * 64, 2), (127 * 64, 2), (128 * 64, 4), (175 * 64, 4), (1024 * 64, 32)],
)
def test_few_sizes_occur_and_little_is_lost_by_it(tokens: int, step: int) -> None:
    assert window_step(tokens, 64) == step
    assert (step - 1) * 64 / tokens < 1 / 31


# --- When ---


def test_only_what_can_be_recorded_is_recorded() -> None:
    def answer(**changed: Any) -> bool:
        objective = {"recordable": True, "views": (ORIGINAL,), "needs_token_states": False, **changed}
        encoder = {"device": torch.device(changed.get("device", "cuda")), "packs": changed.get("packs", True)}
        config = TrainingConfig(accumulate=changed.get("accumulate", 1))
        steps: Any = SimpleNamespace(encoder=SimpleNamespace(**encoder), config=config)
        asked: Any = SimpleNamespace(**objective)
        return can_record(asked, steps)

    assert answer() is True
    other: tuple[dict[str, Any], ...] = ({"recordable": False}, {"views": ()}, {"needs_token_states": True})
    for changed in (*other, {"device": "cpu"}, {"packs": False}, {"accumulate": 2}):
        assert answer(**changed) is False, changed


def test_a_cpu_takes_plain_steps(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(RecordedSteps, "_whole_step")
    assert len(_prepared(tiny_encoder).go().trainer.history.steps) == 9


# --- With graphs ---


class _Forgetful(MeanGap):
    """Keeps nothing of a batch: what a graph writes to is not to be held."""

    recordable = True

    def loss(self, batch: Batch) -> LossTerms:
        terms = super().loss(batch)
        self.batches.clear()
        return terms


def _trained(
    folder: Path, device: str, recorded: bool, monkeypatch: pytest.MonkeyPatch, precision: str, **settings: Any
) -> tuple[Any, TransformerEncoder, list[RecordedSteps]]:
    made: list[RecordedSteps] = []
    real = RecordedSteps.start_epoch

    def start_epoch(steps: RecordedSteps, batches: Any) -> None:
        if steps not in made:
            made.append(steps)
        real(steps, batches)

    with monkeypatch.context() as patched:
        patched.setattr(RecordedSteps, "start_epoch", start_epoch)
        if not recorded:
            patched.setattr(trainer_module, "can_record", lambda *_: False)
        encoder = without_dropout(TransformerEncoder.load(folder, device=torch.device(device)))
        texts, _ = topic_texts(60)
        tokens = encoder.tokenize(texts)
        views = Views(encoder, texts, tokens, dict.fromkeys(PAIR, _Growing([])), 0)
        config = TrainingConfig(batch_size=12, max_epochs=5, precision=precision, check_every=0, **RATES, **settings)
        trainer = Trainer(encoder, views, tokens, np.arange(1, 61), config, None, 0)
        trainer.run([Stage("only", _Forgetful(encoder.dimension))])
    return trainer.history, encoder, made


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize(
    ("precision", "settings", "tolerance"),
    [("float32", {}, 1e-4), ("float32", {"max_grad_norm": 0.5}, 1e-4), ("bfloat16", {}, 5e-2)],
)
def test_replayed_steps_learn_what_plain_ones_do(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, precision: str, settings: dict[str, Any], tolerance: float
) -> None:
    plain, first, none = _trained(tiny_encoder, "cuda", False, monkeypatch, precision, **settings)
    recorded, second, made = _trained(tiny_encoder, "cuda", True, monkeypatch, precision, **settings)
    assert not none and len(made) == 1
    assert made[0]._taken == len(recorded.steps) == 25 > PLAIN_STEPS
    assert 1 <= len(made[0]._recordings) <= 5
    _assert_equal_terms(plain.steps, recorded.steps, tolerance)
    if precision == "float32":
        texts, _ = topic_texts(60)
        np.testing.assert_allclose(first.encode(texts), second.encode(texts), atol=5e-3)


def _run_on_cuda(folder: Path, batch_size: int, epochs: int) -> Trainer:
    """Twelve steps on two dropout views of each text, with rates so small that nothing is learned."""
    encoder = TransformerEncoder.load(folder, device=torch.device("cuda"))
    texts, _ = topic_texts(60)
    tokens = encoder.tokenize(texts)
    rates = {"learning_rate": 1e-30, "head_learning_rate": 1e-30}
    config = TrainingConfig(
        batch_size=batch_size,
        max_epochs=epochs,
        precision="float32",
        check_every=0,
        **rates,  # type: ignore[arg-type]
    )
    views = Views(encoder, texts, tokens, {}, 0)
    trainer = Trainer(encoder, views, tokens, np.ones(60, dtype=np.int64), config, None, 0)
    trainer.run([Stage("only", _Forgetful(encoder.dimension, (ORIGINAL, ORIGINAL)))])
    return trainer


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_replayed_steps_drop_anew_every_time(tiny_encoder: Path) -> None:
    # One batch of all texts: without dropout every step would have the same loss.
    history = _run_on_cuda(tiny_encoder, batch_size=60, epochs=12).history
    assert len(set(history.term("apart"))) == 12
    assert min(history.term("apart")) > 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_recordings_share_their_memory_and_leave_none_behind(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams: list[Any] = []

    class Watched(torch.cuda.graph):
        def __init__(self, graph: Any, pool: Any = None, stream: Any = None) -> None:
            streams.append(stream)
            super().__init__(graph, pool=pool, stream=stream)

    monkeypatch.setattr(torch.cuda, "graph", Watched)
    monkeypatch.setattr("coterie.training.recorded.SIZE_SHARE", 1 / 10_000)
    reserved = []
    for _ in range(3):
        _run_on_cuda(tiny_encoder, batch_size=7, epochs=2)
        gc.collect()
        torch.cuda.empty_cache()
        reserved.append(torch.cuda.memory_reserved())
    # Memory that one stream has freed, another cannot take, though the pool be the same.
    assert len(streams) >= 6 and len(set(streams)) == 1
    assert reserved[2] <= reserved[1]
