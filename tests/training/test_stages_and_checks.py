"""Label checks, snapshots, the early stop, an interruption, and the views drawn on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training_helpers import PAIR, MeanGap, Recorder, Run, prepare

from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training.objective import ORIGINAL, EmbedCorpus, Stage

# Labels cannot change at rates like these.
STILL: dict[str, Any] = {"learning_rate": 1e-12, "head_learning_rate": 1e-12, "dropout": False}


# --- The label-free stop ---


@pytest.mark.parametrize(
    ("patience", "check_every", "epochs", "looks"),
    [
        (1, 1, 5, [1, 2, 3, 4]),  # not after the last epoch, when training ends anyway
        (2, 1, 5, [1, 2, 3]),  # a check after the fourth could only be the first with little change
        (3, 1, 5, [1, 2]),
        (9, 1, 5, []),
        (1, 2, 6, [2, 4]),
        (2, 2, 6, [2]),
        (2, 2, 4, []),
    ],
)
def test_only_looks_that_may_lead_to_a_stop_are_taken(
    tiny_encoder: Path, patience: int, check_every: int, epochs: int, looks: list[int]
) -> None:
    run = prepare(tiny_encoder, max_epochs=epochs, check_every=check_every, patience=patience, tolerance=0).go()
    assert [check["epoch"] for check in run.trainer.history.checks] == looks
    assert run.trainer.history.stop_reasons == {"only": "cap"}


@pytest.mark.parametrize(("check_every", "patience", "epochs"), [(1, 1, 1), (1, 3, 3), (2, 2, 4)])
def test_training_stops_when_labels_stay(tiny_encoder: Path, check_every: int, patience: int, epochs: int) -> None:
    run = prepare(tiny_encoder, **STILL, max_epochs=10, check_every=check_every, patience=patience).go()
    history = run.trainer.history
    assert history.stop_reasons == {"only": "converged"}
    assert history.steps[-1]["epoch"] == epochs
    assert [check["epoch"] for check in history.checks] == list(range(check_every, epochs + 1, check_every))
    assert all(check["label_change"] == 0 for check in history.checks)
    assert [check["step"] for check in history.checks] == [3 * check["epoch"] for check in history.checks]


def test_labels_that_keep_changing_train_on_to_the_cap(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, max_epochs=4, check_every=1, patience=1)
    run.trainer.watch.measure_change = lambda embeddings, tolerance: 0.5  # type: ignore[method-assign]
    history = run.go().trainer.history
    assert history.stop_reasons == {"only": "cap"}
    assert [check["epoch"] for check in history.checks] == [1, 2, 3]


def test_the_stop_can_be_turned_off(tiny_encoder: Path) -> None:
    history = prepare(tiny_encoder, **STILL, max_epochs=6, check_every=0).go().trainer.history
    assert history.stop_reasons == {"only": "cap"}
    assert history.checks == []


def test_a_converged_stage_gives_way_to_the_next(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, **STILL, max_epochs=12, check_every=1, patience=2)
    stages = [Stage("first", run.objective, 0.5), Stage("second", MeanGap(run.encoder.dimension, PAIR), 0.5)]
    history = run.go(stages).trainer.history
    assert history.stop_reasons == {"first": "converged", "second": "converged"}
    assert [record["epoch"] for record in history.steps] == [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3


# --- Snapshots ---


def test_snapshots_at_the_epochs_asked_for(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, max_epochs=5, snapshot_every=2, learning_rate=1e-3)
    before = run.encoder.encode(run.texts)
    snapshots = run.go().trainer.history.snapshots
    assert [(s.stage, s.epoch, s.step) for s in snapshots] == [
        ("start", 0, 0),
        ("only", 2, 6),
        ("only", 4, 12),
        ("only", 5, 15),  # the end is always kept
    ]
    np.testing.assert_allclose(snapshots[0].embeddings, before, atol=1e-6)
    np.testing.assert_allclose(snapshots[-1].embeddings, run.encoder.encode(run.texts), atol=1e-6)
    assert not np.allclose(snapshots[1].embeddings, before, atol=1e-3)
    for snapshot in snapshots:
        assert snapshot.labels.shape == (30,)
        assert np.array_equal(snapshot.labels, run.trainer.watch.partition(snapshot.embeddings).labels)


def test_the_end_of_a_converged_stage_is_a_snapshot(tiny_encoder: Path) -> None:
    run = prepare(tiny_encoder, **STILL, max_epochs=10, check_every=1, patience=3, snapshot_every=2).go()
    assert [snapshot.epoch for snapshot in run.trainer.history.snapshots] == [0, 2, 3]


def test_no_snapshots_unless_asked_for(tiny_encoder: Path) -> None:
    assert prepare(tiny_encoder).go().trainer.history.snapshots == []


def test_snapshots_do_not_change_when_training_stops(tiny_encoder: Path) -> None:
    settings = {**STILL, "max_epochs": 10, "check_every": 2, "patience": 2}
    without = prepare(tiny_encoder, **settings).go().trainer.history
    watched = prepare(tiny_encoder, **settings, snapshot_every=1).go().trainer.history
    assert len(watched.steps) == len(without.steps)
    assert watched.stop_reasons == without.stop_reasons
    assert watched.checks == without.checks


# --- Interruption ---


def test_an_interruption_leaves_a_model_that_works(tiny_encoder: Path) -> None:
    recorder = Recorder(interrupt_at=4)
    run = prepare(tiny_encoder, max_epochs=5, callbacks=[recorder], learning_rate=1e-3)
    before = run.encoder.encode(run.texts)
    never = MeanGap(run.encoder.dimension)
    history = run.go([Stage("first", run.objective, 0.5), Stage("second", never, 0.5)]).trainer.history
    assert history.interrupted
    assert history.stop_reasons == {"first": "interrupted"}
    assert recorder.ends == ["interrupted"]
    assert [record["step"] for record in history.steps] == [1, 2, 3, 4]
    assert never.batches == []
    assert not run.encoder.training
    after = run.encoder.encode(run.texts)
    assert np.isfinite(after).all()
    assert not np.allclose(after, before, atol=1e-4)  # what was learned until then is kept


def test_an_interruption_at_a_look_is_one_too(tiny_encoder: Path) -> None:
    class AtCheck(Recorder):
        def on_check(self, label_change: float) -> None:
            raise KeyboardInterrupt

    run = prepare(tiny_encoder, max_epochs=5, check_every=1, callbacks=[AtCheck()]).go()
    assert run.trainer.history.stop_reasons == {"only": "interrupted"}
    assert len(run.trainer.history.steps) == 3


def test_an_interruption_while_a_stage_is_prepared_is_one_too(tiny_encoder: Path) -> None:
    class Slow(MeanGap):
        def start(self, embed_corpus: EmbedCorpus) -> None:
            raise KeyboardInterrupt

    run = prepare(tiny_encoder)
    try:
        run.go([Stage("first", run.objective, 0.5), Stage("second", Slow(run.encoder.dimension), 0.5)])
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C went through the trainer")
    assert run.trainer.history.interrupted
    assert not run.encoder.training


def test_another_error_is_not_swallowed(tiny_encoder: Path) -> None:
    class Broken(MeanGap):
        def refresh(self, embed_corpus: EmbedCorpus) -> None:
            raise RuntimeError("broken")

    run = prepare(tiny_encoder)
    with pytest.raises(RuntimeError, match="broken"):
        run.go([Stage("only", Broken(run.encoder.dimension))])


# --- What an objective gets ---


def test_start_and_refresh_see_the_corpus_as_it_is(tiny_encoder: Path) -> None:
    calls: list[tuple[str, torch.Tensor]] = []

    class Watching(MeanGap):
        def start(self, embed_corpus: EmbedCorpus) -> None:
            calls.append(("start", embed_corpus()))

        def refresh(self, embed_corpus: EmbedCorpus) -> None:
            calls.append(("refresh", embed_corpus()))

    run = prepare(tiny_encoder, max_epochs=2, learning_rate=1e-3)
    before = run.encoder.encode(run.texts)
    run.go([Stage("only", Watching(run.encoder.dimension))])
    assert [name for name, _ in calls] == ["start", "refresh", "refresh"]
    for _, embeddings in calls[:2]:
        np.testing.assert_allclose(embeddings.numpy(), before, atol=1e-6)
    assert not np.allclose(calls[2][1].numpy(), before, atol=1e-4)
    assert not calls[0][1].requires_grad


# --- Views ---


class Spy(Augmenter):
    """Word deletion that remembers what it made."""

    def __init__(self) -> None:
        self.made: list[list[str]] = []

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.made.append(WordDeletion(0.5).augment(texts, generator))
        return self.made[-1]


def _with_spy(folder: Path, **settings: Any) -> tuple[Run, Spy]:
    spy = Spy()
    return prepare(folder, augmenter=spy, max_epochs=3, **settings).go(), spy


def test_fresh_views_differ_by_epoch_and_are_the_seeds(tiny_encoder: Path) -> None:
    _, spy = _with_spy(tiny_encoder, fresh_views=True)
    assert len(spy.made) == 6  # two views in three epochs
    assert len({tuple(view) for view in spy.made}) == 6
    assert _with_spy(tiny_encoder, fresh_views=True)[1].made == spy.made
    assert _with_spy(tiny_encoder, fresh_views=True, seed=1)[1].made != spy.made


def test_views_are_drawn_once_otherwise(tiny_encoder: Path) -> None:
    _, spy = _with_spy(tiny_encoder, fresh_views=False)
    assert len(spy.made) == 2
    assert spy.made == _with_spy(tiny_encoder, fresh_views=True)[1].made[:2]


def test_only_views_that_are_asked_for_are_made(tiny_encoder: Path) -> None:
    assert _with_spy(tiny_encoder, views=(ORIGINAL,))[1].made == []
    both = _with_spy(tiny_encoder)[1].made
    # A view's draws depend on its own name's place, not on which others are asked for.
    assert _with_spy(tiny_encoder, views=("augmented_2",))[1].made == both[1::2]


def test_the_tokens_of_a_view_are_those_of_its_texts(tiny_encoder: Path) -> None:
    run, spy = _with_spy(tiny_encoder, fresh_views=False)
    views = run.trainer.views
    rows = np.array([4, 17, 0])
    flat = views.rows((ORIGINAL, *PAIR), rows)
    ids, mask = views.tokens.batch(torch.from_numpy(flat), views.tokens.width(flat))
    expected = [[run.texts[i] for i in rows], *([made[i] for i in rows] for made in spy.made)]
    for row, real, text in zip(ids, mask, [text for view in expected for text in view], strict=True):
        assert row[real.bool()].tolist() == run.encoder.tokenizer(text)["input_ids"]
