"""A fitting process as a thread: the same requests and answers, without the seconds that a new process imports for."""

from __future__ import annotations

import os
import threading
from typing import IO

from coterie.benchmark.worker import answer_requests


class WorkerThread:
    """What the runner uses of a process, in this one. It cannot be killed, so nothing may fail in it for good."""

    stdin: IO[str]
    stdout: IO[str]

    def __init__(self, at_once: int) -> None:
        requests, sent = os.pipe()
        received, answers = os.pipe()
        self.stdin, self.stdout = os.fdopen(sent, "w", encoding="utf-8"), os.fdopen(received, encoding="utf-8")
        self._thread = threading.Thread(target=self._answer, args=(requests, answers), daemon=True)
        self._thread.start()

    @staticmethod
    def _answer(requests: int, answers: int) -> None:
        with os.fdopen(requests, encoding="utf-8") as lines, os.fdopen(answers, "w", encoding="utf-8") as stream:
            answer_requests(lines, stream)

    def kill(self) -> None:
        self.communicate()

    def wait(self) -> None:
        self._thread.join()

    def communicate(self) -> None:
        self.stdin.close()
        self.wait()
        self.stdout.close()
