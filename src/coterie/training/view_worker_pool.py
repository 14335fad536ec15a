"""Views drawn ahead of time by worker processes, while the training process waits for its device.

Workers are plain subprocesses: a fork would copy a process that uses a GPU, and multiprocessing's ``spawn`` runs the
user's script a second time. Whatever goes wrong with one, views are drawn in the training process from then on.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from coterie.encoders.tokenization import TokenArrays, contiguous_tokens, rust_tokenizer
from coterie.text.augmentation.base import Augmenter
from coterie.training.worker_protocol import packed_texts, portable, receive, send

logger = logging.getLogger(__name__)

# A worker that has been at one view for this long (and so much longer for each text) is taken for stuck.
PATIENCE_SECONDS, PATIENCE_SECONDS_PER_TEXT = 20.0, 1e-3
SECONDS_TO_END = 5.0

Request = tuple[str, tuple[int, ...]]
"""The name of a view, and the seed of its generator."""


@dataclass(frozen=True)
class Drawn:
    """A view of all texts, and the share of texts that it leaves as they were."""

    tokens: TokenArrays
    unchanged: float


class WorkerError(Exception):
    """A worker said that it cannot go on."""


class Drawers:
    """Worker processes that draw views of one corpus, in the order in which they are asked for.

    Each idle worker takes the oldest request. The processes end with :meth:`close`, with this object, and with the
    training process, whichever comes first.

    Parameters
    ----------
    count: how many processes.
    augmenters: view name to augmenter; :attr:`names` tells which of them can be drawn here.
    tokenizer, max_length: as for :func:`~coterie.encoders.tokenization.tokenize`.
    """

    def __init__(
        self, count: int, texts: Sequence[str], augmenters: Mapping[str, Augmenter], tokenizer: Any, max_length: int
    ) -> None:
        described = {name: portable(augmenter) for name, augmenter in augmenters.items() if not augmenter.slow}
        able = {name: description for name, description in described.items() if description is not None}
        backend = rust_tokenizer(tokenizer)
        self.names = frozenset(able) if backend is not None else frozenset()
        self._asked: dict[Request, Future[Drawn]] = {}
        self._patience = PATIENCE_SECONDS + PATIENCE_SECONDS_PER_TEXT * len(texts)
        self._crew = _Crew()
        self._threads: list[threading.Thread] = []
        weakref.finalize(self, self._crew.dismiss)
        if backend is None or not able:
            return
        try:
            header = {
                "augmenters": able,
                "max_length": max_length,
                "encode_special_tokens": backend.encode_special_tokens,  # the one thing that to_str leaves out
            }
            opening = header, (*packed_texts(texts), backend.to_str().encode("utf-8"))
            for _ in range(count):
                self._threads.append(self._crew.hire(opening))
        except Exception as error:  # a tokenizer with parts in Python, no process to be had
            self._crew.dismiss(f"no worker can be started ({error})")

    def ask(self, request: Request) -> None:
        """Have a view drawn, unless that is under way."""
        if request[0] in self.names and request not in self._asked and not self._crew.dismissed:
            self._asked[request] = self._crew.ask(request)

    def keep_only(self, requests: Container[Request]) -> None:
        """Forget what was asked for beside these."""
        for request in [each for each in self._asked if each not in requests]:
            self._asked.pop(request).cancel()

    def has_begun(self, request: Request) -> bool:
        """Whether a worker is at this view or done with it; one that no worker has begun is forgotten."""
        future = self._asked.get(request)
        if future is None:
            return False
        if future.cancel():
            del self._asked[request]
            return False
        return True

    def take(self, request: Request) -> Drawn | None:
        """A view that was begun; None if it does not come."""
        try:
            return self._asked.pop(request).result(self._patience)
        except TimeoutError:
            self._crew.dismiss(f"a worker did not answer within {self._patience:.0f} s")
        except (CancelledError, OSError, EOFError, ValueError, WorkerError):
            pass  # the thread that met the error has said so
        return None

    def close(self) -> None:
        """End the processes; nothing can be asked for afterwards."""
        self._crew.dismiss()
        for thread in self._threads:
            thread.join(SECONDS_TO_END)
        self._asked.clear()


class _Crew:
    """The processes and what they have to do. Threads hold this, and not the object whose end must end them."""

    def __init__(self) -> None:
        self.dismissed = False
        self._owner = os.getpid()
        self._processes: list[subprocess.Popen[bytes]] = []
        # Its put may interrupt a put in the same thread, as it does when garbage collection ends everything.
        self._waiting: queue.SimpleQueue[tuple[Request, Future[Drawn]] | None] = queue.SimpleQueue()

    def hire(self, opening: tuple[dict[str, Any], tuple[bytes, ...]]) -> threading.Thread:
        process = _started()
        self._processes.append(process)
        # A list, so that the thread can let go of the texts once they are sent.
        thread = threading.Thread(target=self._work_with, args=(process, [opening]), daemon=True)
        thread.start()
        if self.dismissed:  # while this one was being started
            process.kill()
            self._waiting.put(None)
        return thread

    def ask(self, request: Request) -> Future[Drawn]:
        future: Future[Drawn] = Future()
        self._waiting.put((request, future))
        if self.dismissed:  # while this was put there: nobody will look at it
            future.cancel()
        return future

    def dismiss(self, reason: str | None = None) -> None:
        """End all processes; ``reason`` says what went wrong, if anything did."""
        if self.dismissed or os.getpid() != self._owner:  # a forked copy has no say
            return
        self.dismissed = True
        if reason is not None:
            logger.info("views are drawn in the training process from now on: %s", reason)
        for process in self._processes:
            process.kill()  # there is nothing to save, and a worker may be deep in a view
        with suppress(queue.Empty):
            while True:
                job = self._waiting.get_nowait()
                if job is not None:
                    job[1].cancel()
        for process in self._processes:
            self._waiting.put(None)
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_TO_END)

    def _work_with(
        self, process: subprocess.Popen[bytes], openings: list[tuple[dict[str, Any], tuple[bytes, ...]]]
    ) -> None:
        """Hand requests to one worker, one after the other."""
        assert process.stdin is not None and process.stdout is not None
        requests, answers = process.stdin, process.stdout
        try:
            header, parts = openings.pop()
            send(requests, header, *parts)
            del header, parts
            _checked(receive(answers))
            while (job := self._waiting.get()) is not None:
                request, future = job
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(_drawn(request, requests, answers))
                    except BaseException as error:
                        future.set_exception(error)
                        raise
                del job, future  # or an idle thread would keep its last view
        except (OSError, EOFError, ValueError, WorkerError) as error:
            self.dismiss(f"a worker failed ({error})")
        finally:
            for stream in (requests, answers):
                with suppress(OSError):
                    stream.close()


def _drawn(request: Request, requests: IO[bytes], answers: IO[bytes]) -> Drawn:
    name, seed = request
    send(requests, {"name": name, "seed": seed})
    answer, parts = _checked(receive(answers))
    ids, lengths = np.frombuffer(parts[0], dtype=np.int32), np.frombuffer(parts[1], dtype=np.int64)
    return Drawn(contiguous_tokens(ids, lengths, answer["truncated"]), answer["unchanged"])


def _checked(message: tuple[dict[str, Any], list[bytearray]]) -> tuple[dict[str, Any], list[bytearray]]:
    if "error" in message[0]:
        raise WorkerError(message[0]["error"])
    return message


def _started() -> subprocess.Popen[bytes]:
    """A new worker process."""
    environment = {
        **os.environ,
        # The same modules as here, in the same order; -P keeps those of the working directory out.
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path),
        # Several workers share the cores.
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    masked = None
    if sys.platform != "win32":
        # A child inherits what is blocked: no Ctrl-C can reach it before it ignores them.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "coterie.training.view_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
    finally:
        if masked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
