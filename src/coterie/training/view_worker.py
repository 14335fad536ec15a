"""Augment and tokenise texts in a process of its own, started by ``view_worker_pool.py``.

The process ends when its standard input ends. It ignores Ctrl-C, which the training process handles.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import IO, Any

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # before the imports below take their time

import numpy as np
from tokenizers import Tokenizer

from coterie.encoders.tokenization import tokenize, word_token_cache
from coterie.text.augmentation.base import unchanged_share
from coterie.training.worker_protocol import rebuild_augmenter, receive, send, unpack_texts


class ViewWorker:
    """Compute views with the corpus, the augmenters and the tokenizer of the first message."""

    def __init__(self, header: dict[str, Any], parts: list[bytearray]) -> None:
        whole, lengths, tokenizer = parts
        self._texts = unpack_texts(whole, lengths)
        self._augmenters = {name: rebuild_augmenter(described) for name, described in header["augmenters"].items()}
        self._tokenizer = Tokenizer.from_str(tokenizer.decode("utf-8"))
        self._tokenizer.encode_special_tokens = header["encode_special_tokens"]
        self._max_length = header["max_length"]
        # The same words occur in every epoch.
        self._table = word_token_cache(self._tokenizer)

    def send_view(self, request: dict[str, Any], answers: IO[bytes]) -> None:
        """Compute one view of all texts and send it."""
        generator = np.random.default_rng(request["seed"])
        texts = self._augmenters[request["name"]].augment(self._texts, generator)
        tokens = tokenize(self._tokenizer, texts, self._max_length, self._table)
        answer = {"unchanged": unchanged_share(self._texts, texts), "truncated": tokens.truncated}
        send(answers, answer, tokens.ids.tobytes(), tokens.lengths.tobytes())


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the input ends or one fails."""
    try:
        worker = ViewWorker(*receive(requests))
        send(answers, {"ready": True})
        while True:
            worker.send_view(receive(requests)[0], answers)
    except (EOFError, BrokenPipeError):
        return  # the training process has ended, or needs no more views
    except Exception as error:
        with suppress(BrokenPipeError):
            send(answers, {"error": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Serve on standard input and output; anything else that reads or prints in this process is redirected."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    serve(requests, answers)
    sys.stdout.flush()
    os._exit(0)  # without a complaint about a half-written message to a process that has ended


if __name__ == "__main__":
    main()
