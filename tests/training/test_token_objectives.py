"""What objectives may ask of the loop beside sentence embeddings: tokens, a frozen encoder, rates, a head to watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from conftest import topic_texts
from torch import Tensor, nn
from training_helpers import PAIR, MeanGap, Recorder, Run, prepare, spy_on_passes

from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training import trainer as trainer_module
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, LossTerms, Objective, Stage
from coterie.training.stopping import LabelWatch

STILL: dict[str, Any] = {"learning_rate": 1e-12, "head_learning_rate": 1e-12, "dropout": False}


@pytest.fixture
def plain_descent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_module.torch.optim, "Adam", lambda groups, **_: torch.optim.SGD(groups))


class Tokens(MeanGap):
    """Plain means, with token states; the second token of every text is read as the mask token."""

    needs_token_states = True

    def __init__(self, dimension: int, views: tuple[str, ...] = (ORIGINAL, *PAIR)) -> None:
        super().__init__(dimension, views)
        self.asked: list[tuple[Tensor, Tensor]] = []

    def corrupt(self, ids: Tensor, mask: Tensor) -> Tensor:
        self.asked.append((ids, mask))
        read = ids.clone()
        read[:, 1] = 4
        return read


class Plain(Tokens):
    """Token states of the texts as they are."""

    def corrupt(self, ids: Tensor, mask: Tensor) -> Tensor:
        return Objective.corrupt(self, ids, mask)


def _go(folder: Path, objective: type[MeanGap], views: tuple[str, ...] = (ORIGINAL, *PAIR), **settings: Any) -> Run:
    run = prepare(folder, views=views, **settings)
    run.objective = objective(run.encoder.dimension, views)
    return run.go()


# --- Token states ---


def test_token_views_show_what_was_read_and_what_stood_there(tiny_encoder: Path) -> None:
    run = _go(tiny_encoder, Tokens, fresh_views=False, **STILL)
    assert isinstance(run.objective, Tokens)
    assert len(run.objective.asked) == 3 * len(run.objective.batches) == 18  # once a view and a step
    for batch in run.objective.batches:
        rows = batch.rows.numpy()
        assert len(batch.token_views) == len(batch.embeddings) == 3
        for name, view, sentences in zip(run.objective.views, batch.token_views, batch.embeddings, strict=True):
            ids, mask = run.trainer.views.batch(name, rows)
            assert torch.equal(view.original_ids, ids) and torch.equal(view.mask, mask)
            assert (view.ids[:, 1] == 4).all()
            assert torch.equal(view.ids[:, 2:], ids[:, 2:])
            with torch.no_grad():
                output = run.encoder(view.ids, mask)
            assert view.states.shape == (*ids.shape, run.encoder.hidden_size)
            torch.testing.assert_close(view.states.detach(), output.token_states, atol=1e-5, rtol=1e-4)
            # Both losses come from the one pass over the masked text.
            torch.testing.assert_close(sentences.detach(), output.sentences, atol=1e-5, rtol=1e-4)


def test_sentence_embeddings_are_the_same_with_and_without_token_states(tiny_encoder: Path) -> None:
    settings = {**STILL, "max_steps": 2}
    by_token, by_sentence = (_go(tiny_encoder, kind, **settings) for kind in (Plain, MeanGap))
    for a, b in zip(by_token.objective.batches, by_sentence.objective.batches, strict=True):
        assert torch.equal(a.rows, b.rows)
        assert b.token_views == ()
        for first, second in zip(a.embeddings, b.embeddings, strict=True):
            torch.testing.assert_close(first, second, atol=1e-5, rtol=1e-4)


def test_nothing_is_corrupted_unless_token_states_are_asked_for(tiny_encoder: Path) -> None:
    class Sentences(Tokens):
        needs_token_states = False

    run = _go(tiny_encoder, Sentences, max_steps=2)
    assert isinstance(run.objective, Tokens)
    assert run.objective.asked == []


def test_gradients_go_through_both_kinds_of_pass(tiny_encoder: Path) -> None:
    for kind in (Tokens, MeanGap):
        run = _go(tiny_encoder, kind, learning_rate=1e-3, max_steps=3)
        assert run.trainer.history.encoder_change > 1e-4


def test_the_tokens_of_any_view_can_be_had(tiny_encoder: Path) -> None:
    run = _go(tiny_encoder, MeanGap, views=PAIR, fresh_views=False, max_steps=1)
    (batch,) = run.objective.batches
    assert batch.tokens is not None
    assert batch.precision == torch.float32
    for name in (ORIGINAL, *PAIR):
        ids, mask = batch.tokens(name)
        expected = run.trainer.views.batch(name, batch.rows.numpy())
        assert torch.equal(ids, expected[0]) and torch.equal(mask, expected[1])
    original, mask = batch.tokens(ORIGINAL)
    for row, ids, real in zip(batch.rows.tolist(), original, mask.bool(), strict=True):
        assert ids[real].tolist() == run.encoder.tokenizer(run.texts[row])["input_ids"]


def test_padding_counts_token_passes_too(tiny_encoder: Path) -> None:
    run = _go(tiny_encoder, Tokens, views=PAIR[:1], max_epochs=1, length_pool=1)
    assert isinstance(run.objective, Tokens)
    padded = sum(ids.numel() for ids, _ in run.objective.asked)
    real = sum(int(mask.sum()) for _, mask in run.objective.asked)
    assert run.trainer.history.padding == pytest.approx(padded / real)
    assert padded > real


# --- A frozen encoder, and rates ---


class Frozen(Tokens):
    trains_encoder = False

    def __init__(self, dimension: int, views: tuple[str, ...] = (ORIGINAL,)) -> None:
        super().__init__(dimension, views)
        self.passes: list[tuple[bool, bool]] = []

    def loss(self, batch: Batch) -> LossTerms:
        assert not any(each.requires_grad for each in batch.embeddings)
        assert not any(view.states.requires_grad for view in batch.token_views)
        assert torch.is_grad_enabled()  # for the objective's own parameters
        return super().loss(batch)


class FrozenSentences(Frozen):
    needs_token_states = False


@pytest.mark.parametrize("kind", [Frozen, FrozenSentences])
def test_a_frozen_encoder_is_left_as_it_is(tiny_encoder: Path, kind: type[Frozen]) -> None:
    run = prepare(tiny_encoder, views=(ORIGINAL,), learning_rate=0.1, head_learning_rate=0.1)
    run.objective = kind(run.encoder.dimension)
    modes: list[bool] = []
    spy_on_passes(run.encoder, lambda n_texts: modes.append(run.encoder.training))
    before = [each.detach().clone() for each in run.encoder.parameters()]
    point = run.objective.point.detach().clone()
    run.go()
    assert all(torch.equal(a, b) for a, b in zip(before, run.encoder.parameters(), strict=True))
    assert run.trainer.history.encoder_change == 0
    assert modes and not any(modes)
    assert not torch.equal(run.objective.point, point)


def test_the_encoder_trains_again_after_a_frozen_stage(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, views=(ORIGINAL,), learning_rate=1e-3)
    modes: list[bool] = []
    spy_on_passes(run.encoder, lambda n_texts: modes.append(run.encoder.training))
    before = [each.detach().clone() for each in run.encoder.parameters()]
    run.go([Stage("frozen", Frozen(run.encoder.dimension)), Stage("joint", run.objective)])
    assert modes[:3] == [False] * 3 and modes[3:] == [True] * 3
    after = list(run.encoder.parameters())
    change = sum(float((a - b).detach().abs().sum()) for a, b in zip(before, after, strict=True))
    expected = change / sum(each.numel() for each in before)
    assert run.trainer.history.encoder_change == pytest.approx(expected, rel=1e-5)
    assert expected > 1e-5
    assert run.trainer.history.to_dict()["encoder_change"] == run.trainer.history.encoder_change


class Tied(Frozen):
    """A head that shares the encoder's word embeddings."""

    def __init__(self, words: nn.Embedding) -> None:
        super().__init__(words.embedding_dim)
        self.words = words

    def loss(self, batch: Batch) -> LossTerms:
        terms = super().loss(batch)
        return LossTerms(terms.total + (self.words.weight @ self.point).square().mean(), **terms.named)


@pytest.mark.parametrize("interrupt_at", [None, 2])
def test_frozen_is_frozen_whoever_shares_it_and_only_for_the_stage(
    tiny_encoder: Path, interrupt_at: int | None
) -> None:
    recorder = Recorder(interrupt_at=interrupt_at)
    run = prepare(tiny_encoder, learning_rate=0.1, head_learning_rate=0.1, callbacks=[recorder])
    trainable = {name for name, each in run.encoder.named_parameters() if each.requires_grad}
    words = run.encoder.model.get_input_embeddings()  # type: ignore[operator]
    before = words.weight.detach().clone()
    run.go([Stage("only", Tied(words))])
    assert torch.equal(words.weight, before)
    assert not any(each.grad is not None and each.grad.any() for each in run.encoder.parameters())
    assert {name for name, each in run.encoder.named_parameters() if each.requires_grad} == trainable


class TwoHeads(MeanGap):
    """A part with a rate of its own, which also holds a parameter of the encoder's."""

    def __init__(self, dimension: int, views: tuple[str, ...] = (ORIGINAL,)) -> None:
        super().__init__(dimension, views)
        self.fast = nn.Linear(dimension, 1, bias=False)
        nn.init.constant_(self.fast.weight, 0.1)

    def own_rates(self) -> dict[str, float]:
        return {"fast": 0.5}

    def loss(self, batch: Batch) -> LossTerms:
        terms = super().loss(batch)
        return LossTerms(terms.total + self.fast(batch.embeddings[0]).mean(), **terms.named)


def _rates(run: Run, objective: Objective) -> dict[float, int]:
    optimizer = run.trainer._optimizer(objective)
    every = [id(each) for group in optimizer.param_groups for each in group["params"]]
    assert len(every) == len(set(every))
    return {group["lr"]: len(group["params"]) for group in optimizer.param_groups}


def test_a_part_may_have_its_own_rate(tiny_encoder: Path, plain_descent: None) -> None:
    run = prepare(tiny_encoder, views=(ORIGINAL,), learning_rate=1e-30, head_learning_rate=1e-30, max_steps=1)
    run.objective = TwoHeads(run.encoder.dimension)
    point, weight = run.objective.point.detach().clone(), run.objective.fast.weight.detach().clone()
    run.go()
    torch.testing.assert_close(run.objective.point.detach(), point)
    mean = run.objective.batches[0].embeddings[0].detach().mean(dim=0)
    torch.testing.assert_close(run.objective.fast.weight.detach()[0], weight[0] - 0.5 * mean)


def test_a_shared_parameter_is_optimised_once(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, learning_rate=0.2, head_learning_rate=0.3)
    n_encoder = sum(each.requires_grad for each in run.encoder.parameters())
    objective = TwoHeads(run.encoder.dimension)
    assert _rates(run, objective) == {0.5: 1, 0.2: n_encoder, 0.3: 1}
    words = run.encoder.model.get_input_embeddings()  # type: ignore[operator]
    objective.add_module("words", words)
    assert _rates(run, objective) == {0.5: 1, 0.2: n_encoder, 0.3: 1}  # the encoder's, at its rate
    objective.fast.add_module("words", words)
    assert _rates(run, objective) == {0.5: 2, 0.2: n_encoder - 1, 0.3: 1}  # a rate of its own comes first


# --- A head to watch ---


class Headed(MeanGap):
    """A head whose answers are written down beforehand: one list of labels a look."""

    def __init__(self, dimension: int, answers: Sequence[Sequence[int] | None]) -> None:
        super().__init__(dimension, (ORIGINAL,))
        self.answers = list(answers)
        self.modes: list[tuple[bool, bool, tuple[int, ...]]] = []

    def head_probabilities(self, embeddings: Tensor) -> Tensor | None:
        self.modes.append((self.training, torch.is_grad_enabled(), tuple(embeddings.shape)))
        answer = self.answers.pop(0)
        return None if answer is None else torch.eye(3)[list(answer)]


A, B = [0, 1, 2] * 10, [0, 1, 2] * 9 + [2, 1, 0]  # two of thirty differ


def _watched(folder: Path, answers: Sequence[Sequence[int] | None], by_head: bool = True, **settings: Any) -> Run:
    run = prepare(folder, **{**STILL, "max_epochs": 8, "check_every": 1, "patience": 2, **settings})
    run.objective = Headed(run.encoder.dimension, answers)
    return run.go([Stage("only", run.objective, by_head=by_head)])


def test_the_stop_watches_the_head(tiny_encoder: Path) -> None:
    run = _watched(tiny_encoder, [A, B, B, A, A, A])
    changes = [check["label_change"] for check in run.trainer.history.checks]
    # The first look has nothing to compare with.
    assert changes == pytest.approx([1, 2 / 30, 0, 2 / 30, 0, 0])
    assert run.trainer.history.stop_reasons == {"only": "converged"}
    assert isinstance(run.objective, Headed)
    # In evaluation mode, without gradients, over the whole corpus.
    assert run.objective.modes == [(False, False, (30, run.encoder.dimension))] * 6
    for epoch in (3, 5):
        assert run.trainer.history.steps[3 * epoch - 1]["epoch"] == epoch


def test_a_text_counts_as_often_as_it_occurs(tiny_encoder: Path) -> None:
    counts = np.ones(30, dtype=np.int64)
    counts[27] = 11
    run = _watched(tiny_encoder, [A, B, B, B, B, B, B], counts=counts)
    assert run.trainer.history.checks[1]["label_change"] == pytest.approx(12 / 40)


def test_k_means_is_watched_where_the_head_has_no_answer_or_is_not_asked(tiny_encoder: Path) -> None:
    for answers, by_head in (([None] * 7, True), ([], False)):
        run = _watched(tiny_encoder, answers, by_head)  # type: ignore[arg-type]
        assert [check["label_change"] for check in run.trainer.history.checks] == [0, 0]
        assert run.trainer.history.stop_reasons == {"only": "converged"}


def test_training_goes_on_in_training_mode_after_a_look(tiny_encoder: Path) -> None:
    class Mode(Headed):
        def loss(self, batch: Batch) -> LossTerms:
            assert self.training
            return super().loss(batch)

    run = prepare(tiny_encoder, max_epochs=3, check_every=1, patience=1, tolerance=0)
    run.go([Stage("only", Mode(run.encoder.dimension, [A, B]), by_head=True)])
    assert len(run.trainer.history.checks) == 2


def test_a_stage_that_may_not_stop_is_not_looked_at(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, **STILL, max_epochs=8, check_every=1, patience=1)
    run.go([Stage("first", run.objective, stops=False), Stage("second", MeanGap(run.encoder.dimension))])
    assert run.trainer.history.stop_reasons == {"first": "cap", "second": "converged"}
    assert {check["stage"] for check in run.trainer.history.checks} == {"second"}
    assert sum(record["stage"] == "first" for record in run.trainer.history.steps) == 12


def test_looks_at_a_head() -> None:
    weights = np.array([1, 2, 3, 4])
    watch = LabelWatch(np.array([0, 0, 1, 1]), np.zeros((2, 2), dtype=np.float32), weights, patience=2)
    first, second = np.array([0, 1, 0, 1]), np.array([1, 1, 0, 1])
    assert watch.measure_head_change(first, 0.2) == 1.0
    assert not watch.converged
    assert watch.measure_head_change(second, 0.2) == pytest.approx(0.1)
    assert not watch.converged  # calm once
    assert watch.measure_head_change(second, 0.2) == 0 and watch.converged
    assert watch.measure_head_change(1 - second, 0.2) == 1.0 and not watch.converged
    assert watch.labels.tolist() == [0, 0, 1, 1]  # k-means goes its own way
    watch.start_over()
    assert watch.measure_head_change(1 - second, 0.2) == 1.0  # a new stage's head is another's


# --- Stages ---


def test_stages_of_one_name_are_told_apart(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, max_epochs=5)
    names = ["again", "again", "again_2", "again", "other"]
    run.go([Stage(name, MeanGap(run.encoder.dimension, (ORIGINAL,))) for name in names])
    assert len(run.trainer.history.stop_reasons) == 5
    assert list(run.trainer.history.stop_reasons) == ["again", "again_2", "again_2_2", "again_3", "other"]
    assert set(run.trainer.history.stop_reasons.values()) == {"cap"}


def test_a_cap_of_steps_can_be_given(tiny_encoder: Path) -> None:
    recorder = Recorder()
    run = prepare(tiny_encoder, max_epochs=5, max_steps=9, callbacks=[recorder])
    history = run.trainer.run([Stage("a", run.objective, 1), Stage("b", MeanGap(run.encoder.dimension), 3)], cap=4)
    assert recorder.stages == [("a", 1), ("b", 3)]
    assert len(history.steps) == 4


@pytest.mark.parametrize(("cap", "steps"), [(70, [10, 6, 54]), (35, [5, 3, 27]), (7, [1, 1, 5]), (2, [0, 0, 2])])
def test_shares_scale_with_the_cap_and_add_up(tiny_encoder: Path, cap: int, steps: list[int]) -> None:
    recorder = Recorder()
    run = prepare(tiny_encoder, n=6, batch_size=3, callbacks=[recorder], **STILL)
    stages = [
        Stage(str(share), MeanGap(run.encoder.dimension, (ORIGINAL,)), share, stops=False) for share in (10, 6, 54)
    ]
    run.trainer.run(stages, cap=cap)
    assert [total for _, total in recorder.stages] == steps
    assert len(run.trainer.history.steps) == sum(steps) == cap


@pytest.mark.parametrize(
    ("settings", "epochs", "steps"),
    [
        ({"max_epochs": 9, "max_steps": None}, (1, 3), [2, 6]),  # as long as they are said to last
        ({"max_epochs": 2, "max_steps": None}, (1, 3), [1, 3]),  # the cap is lower: all shrink alike
        ({"max_epochs": 9, "max_steps": 4}, (1, 3), [1, 3]),
        ({"max_epochs": 9, "max_steps": 100}, (2, 0), [4, 0]),
        ({"max_epochs": None, "max_steps": 100}, (1, 1), [2, 2]),
    ],
)
def test_stages_of_so_many_epochs(
    tiny_encoder: Path, settings: dict[str, int | None], epochs: tuple[int, int], steps: list[int]
) -> None:
    recorder = Recorder()
    run = prepare(tiny_encoder, n=6, batch_size=3, callbacks=[recorder], **STILL, **settings)
    run.go([Stage(str(n), MeanGap(run.encoder.dimension, (ORIGINAL,)), epochs=n, stops=False) for n in epochs])
    assert [total for _, total in recorder.stages] == steps
    assert len(run.trainer.history.steps) == sum(steps)


# --- Slow augmenters ---


@dataclass(frozen=True)
class Slow(Augmenter):
    """Word deletion that says it takes long, and remembers being asked."""

    slow: ClassVar[bool] = True
    asked: ClassVar[list[list[str]]] = []

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.asked.append(WordDeletion(0.4).augment(texts, generator))
        return self.asked[-1]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path))
    monkeypatch.setattr(Slow, "asked", [])
    return tmp_path


def _read(run: Run, name: str) -> list[list[int]]:
    ids, mask = run.trainer.views.batch(name, np.arange(len(run.texts)))
    return [row[real.bool()].tolist() for row, real in zip(ids, mask, strict=True)]


def test_a_slow_augmenter_is_asked_once_and_kept_on_disk(tiny_encoder: Path, cache: Path) -> None:
    run = prepare(tiny_encoder, augmenter=Slow(), max_epochs=3, fresh_views=True).go()
    assert len(Slow.asked) == 2  # once a view, not once an epoch
    assert Slow.asked[0] != Slow.asked[1]
    assert len(list(cache.rglob("*.jsonl.gz"))) == 2
    for name, texts in zip(PAIR, Slow.asked, strict=True):
        assert _read(run, name) == [run.encoder.tokenizer(text)["input_ids"] for text in texts]
        same = np.mean([a == b for a, b in zip(run.texts, texts, strict=True)])
        assert run.trainer.views.unchanged[name] == pytest.approx(same)
    again = prepare(tiny_encoder, augmenter=Slow(), max_epochs=1).go()
    assert len(Slow.asked) == 2
    assert all(_read(again, name) == _read(run, name) for name in PAIR)
    prepare(tiny_encoder, augmenter=Slow(), max_epochs=1, seed=1).go()
    assert len(Slow.asked) == 4 and Slow.asked[2] != Slow.asked[0]


def test_a_fast_augmenter_leaves_nothing_on_disk(tiny_encoder: Path, cache: Path) -> None:
    run = prepare(tiny_encoder, max_epochs=2).go()
    assert list(cache.rglob("*")) == []
    assert set(run.trainer.views.unchanged) == set(AUGMENTED)


def test_later_stages_see_the_same_slow_view(tiny_encoder: Path, cache: Path) -> None:
    run = prepare(tiny_encoder, augmenter=Slow(), max_epochs=4)
    first, second = (MeanGap(run.encoder.dimension, (ORIGINAL, name)) for name in PAIR)
    run.go([Stage("first", first), Stage("second", second)])
    assert len(Slow.asked) == 2
    assert _read(run, PAIR[1]) == [run.encoder.tokenizer(text)["input_ids"] for text in Slow.asked[1]]
    assert topic_texts(30)[0] == run.texts


def test_a_slow_view_is_kept_where_nothing_can_be_written(
    tiny_encoder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = cache / "a file"
    blocked.write_text("in the way of a folder")
    monkeypatch.setenv("COTERIE_CACHE", str(blocked))
    prepare(tiny_encoder, augmenter=Slow(), max_epochs=3, fresh_views=True).go()
    assert len(Slow.asked) == 2
