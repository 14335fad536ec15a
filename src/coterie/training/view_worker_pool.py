"""Compute augmented views ahead of time in worker processes, while the training process waits for its device.

Workers are plain subprocesses: a fork would copy a process that uses a GPU, and multiprocessing's ``spawn`` runs the
user's script a second time. When a worker fails, the training process computes all further views itself.
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
from coterie.training.worker_protocol import describe_augmenter, pack_texts, receive, send

logger = logging.getLogger(__name__)

# Seconds after which a worker that has not finished a view counts as stuck. Slow augmenters never run in a worker, so
# this is ample.
VIEW_TIMEOUT = 20.0
# Additional seconds per text: far more than augmenting a text by rules takes.
VIEW_TIMEOUT_PER_TEXT = 1e-3
# Seconds to wait for a process or thread to end: a killed process ends at once.
END_TIMEOUT = 5.0

Request = tuple[str, tuple[int, ...]]
"""The name of a view and the seed of its generator."""


@dataclass(frozen=True)
class TokenizedView:
    """The tokens of a view of all texts, and the share of texts that it leaves unchanged."""

    tokens: TokenArrays
    unchanged: float


class WorkerError(Exception):
    """A worker reported an error."""


class ViewWorkerPool:
    """Worker processes that compute views of one corpus, in the order of the requests.

    Each idle worker takes the oldest request. The processes end with :meth:`close`, with this object, or with the
    training process, whichever comes first.

    Parameters
    ----------
    count:
        Number of processes.
    augmenters:
        View name to augmenter; :attr:`names` holds those that workers can compute.
    tokenizer, max_length:
        See :func:`~coterie.encoders.tokenization.tokenize`.
    """

    def __init__(
        self, count: int, texts: Sequence[str], augmenters: Mapping[str, Augmenter], tokenizer: Any, max_length: int
    ) -> None:
        quick = {name: describe_augmenter(each) for name, each in augmenters.items() if not each.slow}
        able = {name: description for name, description in quick.items() if description is not None}
        backend = rust_tokenizer(tokenizer)
        self.names = frozenset(able) if backend is not None else frozenset()
        self._requested: dict[Request, Future[TokenizedView]] = {}
        self._timeout = VIEW_TIMEOUT + VIEW_TIMEOUT_PER_TEXT * len(texts)
        self._workers = _Workers()
        self._threads: list[threading.Thread] = []
        weakref.finalize(self, self._workers.stop)
        if backend is None or not able:
            return
        try:
            header = {
                "augmenters": able,
                "max_length": max_length,
                "encode_special_tokens": backend.encode_special_tokens,  # to_str leaves this setting out
            }
            opening = header, (*pack_texts(texts), backend.to_str().encode("utf-8"))
            for _ in range(count):
                self._threads.append(self._workers.start_one(opening))
        except Exception as error:  # a tokenizer with parts in Python, or no process can be started
            self._workers.stop(f"no worker can be started ({error})")

    def submit(self, request: Request) -> None:
        """Queue a view, unless it is queued already."""
        if request[0] in self.names and request not in self._requested and not self._workers.stopped:
            self._requested[request] = self._workers.submit(request)

    def keep_only(self, requests: Container[Request]) -> None:
        """Cancel all other requests."""
        for request in [each for each in self._requested if each not in requests]:
            self._requested.pop(request).cancel()

    def has_begun(self, request: Request) -> bool:
        """Return whether a worker has begun this view; a request that no worker has begun is cancelled."""
        future = self._requested.get(request)
        if future is None:
            return False
        if future.cancel():
            del self._requested[request]
            return False
        return True

    def take(self, request: Request) -> TokenizedView | None:
        """Wait for a view that was begun; return ``None`` if the worker fails."""
        try:
            return self._requested.pop(request).result(self._timeout)
        except TimeoutError:
            self._workers.stop(f"a worker did not answer within {self._timeout:.0f} s")
        except (CancelledError, OSError, EOFError, ValueError, WorkerError):
            pass  # the thread in which the error occurred has logged it
        return None

    def close(self) -> None:
        """End the processes; later requests are ignored."""
        self._workers.stop()
        for thread in self._threads:
            thread.join(END_TIMEOUT)
        self._requested.clear()


class _Workers:
    """The processes and their queue. Threads refer to this object, not to the pool, so that they end with the pool."""

    def __init__(self) -> None:
        self.stopped = False
        self._owner = os.getpid()
        self._processes: list[subprocess.Popen[bytes]] = []
        # A SimpleQueue, because garbage collection may call put() inside another put() of the same thread.
        self._waiting: queue.SimpleQueue[tuple[Request, Future[TokenizedView]] | None] = queue.SimpleQueue()

    def start_one(self, opening: tuple[dict[str, Any], tuple[bytes, ...]]) -> threading.Thread:
        process = _start_process()
        self._processes.append(process)
        # A list, so that the thread can release the texts once they are sent.
        thread = threading.Thread(target=self._work_with, args=(process, [opening]), daemon=True)
        thread.start()
        if self.stopped:  # stopped while this process was starting
            process.kill()
            self._waiting.put(None)
        return thread

    def submit(self, request: Request) -> Future[TokenizedView]:
        future: Future[TokenizedView] = Future()
        self._waiting.put((request, future))
        if self.stopped:  # stopped in the meantime: no thread will read it
            future.cancel()
        return future

    def stop(self, reason: str | None = None) -> None:
        """End all processes; ``reason`` is the failure that makes it necessary, if there is one."""
        if self.stopped or os.getpid() != self._owner:  # a forked copy must not end them
            return
        self.stopped = True
        if reason is not None:
            logger.info("augmented views are computed in the training process from now on: %s", reason)
        for process in self._processes:
            process.kill()  # nothing needs to be saved, and a worker may be busy with a view
        with suppress(queue.Empty):
            while True:
                job = self._waiting.get_nowait()
                if job is not None:
                    job[1].cancel()
        for process in self._processes:
            self._waiting.put(None)
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_TIMEOUT)

    def _work_with(
        self, process: subprocess.Popen[bytes], openings: list[tuple[dict[str, Any], tuple[bytes, ...]]]
    ) -> None:
        """Send requests to one worker, one after the other."""
        assert process.stdin is not None and process.stdout is not None
        requests, answers = process.stdin, process.stdout
        try:
            header, parts = openings.pop()
            send(requests, header, *parts)
            del header, parts
            _raise_for_error(receive(answers))
            while (job := self._waiting.get()) is not None:
                request, future = job
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(_request_view(request, requests, answers))
                    except BaseException as error:
                        future.set_exception(error)
                        raise
                del job, future  # an idle thread must not hold its last view
        except (OSError, EOFError, ValueError, WorkerError) as error:
            self.stop(f"a worker failed ({error})")
        finally:
            for stream in (requests, answers):
                with suppress(OSError):
                    stream.close()


def _request_view(request: Request, requests: IO[bytes], answers: IO[bytes]) -> TokenizedView:
    name, seed = request
    send(requests, {"name": name, "seed": seed})
    answer, parts = _raise_for_error(receive(answers))
    ids, lengths = np.frombuffer(parts[0], dtype=np.int32), np.frombuffer(parts[1], dtype=np.int64)
    return TokenizedView(contiguous_tokens(ids, lengths, answer["truncated"]), answer["unchanged"])


def _raise_for_error(message: tuple[dict[str, Any], list[bytearray]]) -> tuple[dict[str, Any], list[bytearray]]:
    if "error" in message[0]:
        raise WorkerError(message[0]["error"])
    return message


def _start_process() -> subprocess.Popen[bytes]:
    """Start a worker process."""
    environment = {
        **os.environ,
        # The same modules as in this process, in the same order; -P excludes the working directory.
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path),
        # Several workers share the cores.
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    masked = None
    if sys.platform != "win32":
        # A child inherits blocked signals, so that no Ctrl-C reaches it before it ignores them.
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
