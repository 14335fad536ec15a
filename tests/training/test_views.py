"""Views of a corpus: the same whether workers draw them ahead or not, whatever happens to the workers."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts
from training_helpers import PAIR
from worker_augmenters import Failing, Sleepy, Talkative

from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.composition import Composition
from coterie.text.augmentation.eda import EDA
from coterie.text.augmentation.random_swap import RandomSwap
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training import view_worker_pool
from coterie.training.views import Views

SECONDS = 60.0  # more than a busy machine takes for anything here
TEXTS = topic_texts(300)[0]
needs_signals = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> TransformerEncoder:
    return TransformerEncoder.load(tiny_encoder, max_length=7)


@dataclass
class Made:
    """Views over one corpus, and which of them were drawn in this process."""

    views: Views
    here: list[tuple[str, int]] = field(default_factory=list)

    def tables(self, names: tuple[str, ...], epoch: int, **given: Any) -> list[list[int]]:
        self.views.resample(names, epoch, **given)
        tokens = self.views.tokens
        rows = self.views.rows(list(names), np.arange(len(TEXTS)))
        width = tokens.width(rows)
        ids, _ = tokens.batch(tokens.starts.new_tensor(rows.tolist()), width)
        return ids.tolist()

    @property
    def processes(self) -> list[Any]:
        return [] if self.views._pool is None else self.views._pool._workers._processes

    @property
    def under_way(self) -> set[tuple[str, int]]:
        asked = {} if self.views._pool is None else self.views._pool._requested
        return {(name, seed[-1]) for name, seed in asked}

    def wait_for_workers(self) -> None:
        """Wait for everything that is under way."""
        assert self.views._pool is not None
        for future in list(self.views._pool._requested.values()):
            with suppress(CancelledError):
                future.exception(SECONDS)


@contextmanager
def _views(
    encoder: TransformerEncoder, augmenters: Augmenter | Mapping[str, Augmenter], ahead: int = 0, seed: int = 5
) -> Iterator[Made]:
    named = augmenters if isinstance(augmenters, Mapping) else dict.fromkeys(PAIR, augmenters)
    with Views(encoder, TEXTS, encoder.tokenize(TEXTS), named, seed, ahead=ahead) as views:
        made = Made(views)
        drawn_here = views._augment_here

        def noted(name: str, request: Any) -> Any:
            made.here.append((name, request[1][-1]))
            return drawn_here(name, request)

        views._augment_here = noted  # type: ignore[method-assign]
        yield made
        del views._augment_here


def _gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


# --- What is drawn ---


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize(
    "augmenter",
    [WordDeletion(0.3), EDA(0.3), Composition(WordDeletion(0.2), RandomSwap(0.3))],
    ids=["word_deletion", "eda", "composition"],
)
def test_workers_draw_what_is_drawn_here(encoder: TransformerEncoder, augmenter: Augmenter, ahead: int) -> None:
    with _views(encoder, augmenter) as plain, _views(encoder, augmenter, ahead) as made:
        expected = [plain.tables(PAIR, epoch) for epoch in range(4)]
        assert expected[0] != expected[1]
        made.views.prefetch(PAIR, [0])
        for epoch in range(4):
            made.wait_for_workers()
            assert made.tables(PAIR, epoch, last=3) == expected[epoch]
        assert made.here == []
        assert len(plain.here) == 8
        assert plain.processes == []
        assert len(made.processes) == ahead
        assert made.views.unchanged == plain.views.unchanged
        assert 0 <= plain.views.unchanged[PAIR[0]] < 1


def test_views_that_nobody_has_begun_are_drawn_here(
    encoder: TransformerEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="coterie")
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, Sleepy(0.3), ahead=1) as made:
        # No worker can have started yet; afterwards it sleeps over the first view.
        for epoch in range(3):
            assert made.tables(PAIR, epoch, last=0 if epoch else 5) == plain.tables(PAIR, epoch)
        # Nobody waited for the worker until it was given up.
        assert "in the training process from now on" not in caplog.text
        assert ("augmented_1", 0) in made.here and ("augmented_2", 2) in made.here


def _until_one_runs(made: Made) -> None:
    assert made.views._pool is not None
    deadline = time.monotonic() + SECONDS
    while not any(future.running() for future in made.views._pool._requested.values()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_a_worker_is_at_is_waited_for_and_the_rest_is_not(encoder: TransformerEncoder) -> None:
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, Sleepy(0.3, seconds=1.0), ahead=1) as made:
        made.views.prefetch(PAIR, [0])
        _until_one_runs(made)
        assert made.tables(PAIR, 0, last=0) == plain.tables(PAIR, 0)
        assert made.here == [(PAIR[1], 0)]
        assert made.under_way == set()


def test_each_view_is_drawn_by_its_own_augmenter_and_seed(encoder: TransformerEncoder) -> None:
    augmenters = {"first": WordDeletion(0.5), "second": EDA(0.3), "third": WordDeletion(0.5)}
    with _views(encoder, augmenters) as plain, _views(encoder, augmenters, ahead=2) as made:
        made.views.prefetch(["third", "second"], [7])
        made.wait_for_workers()
        # The places of the views count, not the order in which they are asked for.
        assert made.tables(("third", "second"), 7, last=7) == plain.tables(("third", "second"), 7)
        assert made.here == []
        assert plain.tables(("first",), 7) != plain.tables(("third",), 7)
        with _views(encoder, augmenters, seed=6) as other:
            assert other.tables(("first",), 7) != plain.tables(("first",), 7)


def test_slow_views_are_drawn_once_and_here(
    encoder: TransformerEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path))
    slow = Composition(WordDeletion(0.3))
    object.__setattr__(slow, "slow", True)
    with _views(encoder, {"slow": slow, "quick": WordDeletion(0.3)}, ahead=1) as made:
        first = made.tables(("slow",), 0)
        assert made.processes == []  # there is nothing to draw ahead
        assert made.tables(("slow", "quick"), 1)[: len(TEXTS)] == first
        made.wait_for_workers()
        assert made.under_way == {("quick", 2)}
        assert made.tables(("slow", "quick"), 2, last=2)[: len(TEXTS)] == first
        assert set(made.views.unchanged) == {"slow", "quick"}
    assert len(list(tmp_path.rglob("*.jsonl.gz"))) == 1


# --- What is asked for ---


def test_only_epochs_that_come_are_asked_for(encoder: TransformerEncoder) -> None:
    with _views(encoder, WordDeletion(0.3), ahead=2) as made:
        made.views.resample(PAIR, 4, last=4)
        assert made.processes == []
        made.views.resample(PAIR, 5, last=6)
        assert made.under_way == {(name, 6) for name in PAIR}
        made.views.resample(PAIR, 6)
        assert made.under_way == {(name, epoch) for name in PAIR for epoch in (7, 8)}
        made.views.resample(PAIR[:1], 7)
        assert made.under_way == {(PAIR[0], 8), (PAIR[0], 9)}
        made.views.resample(["original"], 8)
        assert made.under_way == set()


def test_the_number_of_workers_is_checked(encoder: TransformerEncoder) -> None:
    with pytest.raises(SettingError, match="ahead=-1"):
        Views(encoder, TEXTS, encoder.tokenize(TEXTS), {}, 0, ahead=-1)


def test_what_cannot_travel_is_drawn_here(encoder: TransformerEncoder) -> None:
    @dataclass(frozen=True)
    class Local(WordDeletion):
        pass

    augmenters = {"local": Local(0.3), "global": WordDeletion(0.3)}
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, augmenters, ahead=1) as made:
        made.views.prefetch(list(augmenters), [0])
        made.wait_for_workers()
        assert made.under_way == {("global", 0)}
        assert made.tables(tuple(augmenters), 0, last=0) == plain.tables(PAIR, 0)
        assert made.here == [("local", 0)]
    with _views(encoder, Local(0.3), ahead=1) as made:
        made.views.resample(PAIR, 0)
        assert made.processes == []


# --- What goes wrong ---


def _ready(made: Made) -> list[int]:
    """The workers' process ids, once one has answered."""
    made.views.prefetch(PAIR, [100])
    made.wait_for_workers()
    return [process.pid for process in made.processes]


@needs_signals
def test_a_killed_worker_changes_nothing(encoder: TransformerEncoder, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="coterie")
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, WordDeletion(0.3), ahead=2) as made:
        workers = _ready(made)
        made.views.resample(PAIR, 0)
        made.wait_for_workers()
        assert made.tables(PAIR, 1) == plain.tables(PAIR, 1)
        assert (PAIR[0], 1) not in made.here
        os.kill(workers[0], signal.SIGKILL)
        for epoch in range(2, 6):
            assert made.tables(PAIR, epoch) == plain.tables(PAIR, epoch)
            time.sleep(0.05)
        assert (PAIR[0], 5) in made.here and (PAIR[1], 5) in made.here
        assert all(_gone(worker) for worker in workers)
        notes = [record.message for record in caplog.records if "in the training process from now on" in record.message]
        assert len(notes) == 1


@needs_signals
def test_a_worker_killed_in_the_middle_of_a_view_changes_nothing(encoder: TransformerEncoder) -> None:
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, Sleepy(0.3), ahead=1) as made:
        made.views.prefetch(PAIR, [0])
        _until_one_runs(made)
        os.kill(made.processes[0].pid, signal.SIGKILL)
        assert made.tables(PAIR, 0) == plain.tables(PAIR, 0)
        assert sorted(made.here) == [(name, 0) for name in PAIR]


@needs_signals
def test_a_stuck_worker_is_not_waited_for_without_end(
    encoder: TransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_worker_pool, "VIEW_TIMEOUT", 0.2)
    monkeypatch.setattr(view_worker_pool, "VIEW_TIMEOUT_PER_TEXT", 0.0)
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, WordDeletion(0.3), ahead=1) as made:
        (worker,) = _ready(made)
        os.kill(worker, signal.SIGSTOP)
        made.views.prefetch(PAIR, [0])
        time.sleep(0.3)
        assert made.tables(PAIR, 0) == plain.tables(PAIR, 0)
        assert _gone(worker)


def test_a_worker_that_fails_leaves_the_work_to_this_process(
    encoder: TransformerEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="coterie")
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, Failing(0.3), ahead=1) as made:
        made.views.prefetch(PAIR, [0])
        made.wait_for_workers()
        assert made.tables(PAIR, 0) == plain.tables(PAIR, 0)
        assert "RuntimeError: not here" in caplog.text


def test_what_an_augmenter_prints_and_reads_is_not_the_workers_talk(
    encoder: TransformerEncoder, capfd: pytest.CaptureFixture[str]
) -> None:
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, Talkative(0.3), ahead=1) as made:
        made.views.prefetch(PAIR, [0])
        made.wait_for_workers()
        assert made.tables(PAIR, 0, last=0) == plain.tables(PAIR, 0)
        assert made.here == []
        output = capfd.readouterr()
        assert output.out == ""
        assert "a line in between" in output.err and "and another" in output.err


@needs_signals
def test_ctrl_c_is_not_for_workers(encoder: TransformerEncoder) -> None:
    with _views(encoder, WordDeletion(0.3)) as plain, _views(encoder, WordDeletion(0.3), ahead=1) as made:
        made.views.prefetch(PAIR, [0])
        os.kill(made.processes[0].pid, signal.SIGINT)  # while it starts
        made.wait_for_workers()
        os.kill(made.processes[0].pid, signal.SIGINT)
        made.views.prefetch(PAIR, [1])
        made.wait_for_workers()
        assert made.tables(PAIR, 0) == plain.tables(PAIR, 0)
        assert made.tables(PAIR, 1, last=1) == plain.tables(PAIR, 1)
        assert made.here == []


# --- What is left behind ---


@needs_signals
@pytest.mark.parametrize("end", ["close", "forget"])
@pytest.mark.parametrize("augmenter", [WordDeletion(0.3), Sleepy(0.3)], ids=["idle", "at work"])
def test_no_process_is_left(encoder: TransformerEncoder, end: str, augmenter: Augmenter) -> None:
    views = Views(encoder, TEXTS, encoder.tokenize(TEXTS), dict.fromkeys(PAIR, augmenter), 0, ahead=2)
    views.resample(PAIR, 0)
    assert views._pool is not None
    crew = views._pool._workers
    threads, workers = views._pool._threads, [process.pid for process in crew._processes]
    assert len(workers) == 2 and not any(_gone(worker) for worker in workers)
    made = Made(views)
    if isinstance(augmenter, Sleepy):
        _until_one_runs(made)
    else:
        made.wait_for_workers()
    del made
    if end == "close":
        pool = views._pool  # held, so that it cannot end by being forgotten
        views.close()
        assert not any(thread.is_alive() for thread in pool._threads)
        views.close()
        views.resample(PAIR, 1)
        assert views._pool is None
    else:
        del views
        gc.collect()
    assert all(_gone(worker) for worker in workers)
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert all(process.stdin.closed and process.stdout.closed for process in crew._processes)
