"""Augmenters that try a worker process; light to import, since a worker imports this file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie.text.augmentation.word_deletion import WordDeletion


@dataclass(frozen=True)
class Sleepy(WordDeletion):
    """Takes its time, but only in a worker: that is, where torch was never loaded."""

    seconds: float = 60.0

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        if "torch" not in sys.modules:
            time.sleep(self.seconds)
        return super().augment(texts, generator)


@dataclass(frozen=True)
class Talkative(WordDeletion):
    """Prints where a worker's answers go, and reads where its requests come from."""

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        if "torch" not in sys.modules:
            print("a line in between", flush=True)
            os.write(1, b"and another\n")
            assert sys.stdin.read() == ""
        return super().augment(texts, generator)


@dataclass(frozen=True)
class Failing(WordDeletion):
    """Cannot work in a worker."""

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        if "torch" not in sys.modules:
            raise RuntimeError("not here")
        return super().augment(texts, generator)
