"""A process that draws and tokenises views: ``python -m coterie.training.view_worker``, started by ``drawing.py``.

It ends when its standard input does. Ctrl-C is the business of the training process alone.
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
from coterie.training.worker_protocol import rebuilt, receive, send, unpacked_texts


class Drawer:
    """The corpus, its augmenters and its tokenizer, as the first message brings them."""

    def __init__(self, header: dict[str, Any], parts: list[bytearray]) -> None:
        whole, lengths, tokenizer = parts
        self._texts = unpacked_texts(whole, lengths)
        self._augmenters = {name: rebuilt(described) for name, described in header["augmenters"].items()}
        self._tokenizer = Tokenizer.from_str(tokenizer.decode("utf-8"))
        self._tokenizer.encode_special_tokens = header["encode_special_tokens"]
        self._max_length = header["max_length"]
        # The same words come every epoch.
        self._table = word_token_cache(self._tokenizer)

    def draw(self, request: dict[str, Any], answers: IO[bytes]) -> None:
        """Send one view of all texts."""
        generator = np.random.default_rng(request["seed"])
        texts = self._augmenters[request["name"]].augment(self._texts, generator)
        tokens = tokenize(self._tokenizer, texts, self._max_length, self._table)
        answer = {"unchanged": unchanged_share(self._texts, texts), "truncated": tokens.truncated}
        send(answers, answer, tokens.ids.tobytes(), tokens.lengths.tobytes())


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more; the first that fails is the last."""
    try:
        drawer = Drawer(*receive(requests))
        send(answers, {"ready": True})
        while True:
            drawer.draw(receive(requests)[0], answers)
    except (EOFError, BrokenPipeError):
        return  # the training process has ended, or wants no more
    except Exception as error:
        with suppress(BrokenPipeError):
            send(answers, {"error": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Serve on standard input and output; whatever else reads or prints in this process gets others."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    serve(requests, answers)
    sys.stdout.flush()
    os._exit(0)  # half a message for a process that has ended would be complained about


if __name__ == "__main__":
    main()
