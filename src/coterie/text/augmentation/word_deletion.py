"""Delete words of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from coterie.checks import check_number
from coterie.text.augmentation.base import Augmenter
from coterie.text.word_segmentation import SplitText, has_no_spaces, split_text, split_words

# Texts per call of the random generator: with fewer, the calls take longer; with more, they are no faster.
TEXTS_AT_A_TIME = 100


@dataclass(frozen=True)
class WordDeletion(Augmenter):
    """Delete each word with probability ``ratio``; at least one word stays.

    A text of one word is left unchanged. One space remains of the white space around deleted words.

    Parameters
    ----------
    ratio: the probability for each word, between 0 and 1.

    Examples
    --------
    >>> WordDeletion(0.4).augment(["where is my parcel now"], np.random.default_rng(0))
    ['where now']
    """

    ratio: float = 0.2

    def check(self) -> None:
        check_number("ratio", self.ratio, above=0, below=1)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        result: list[str] = []
        ahead: list[list[str]] = []
        while len(result) < len(texts):
            some = texts[len(result) : len(result) + TEXTS_AT_A_TIME]
            ahead += [split_words(text) for text in some[len(ahead) :]]
            done = self._augment_first(some, ahead, generator)
            del ahead[: len(done)]
            result += done
        return result

    def _augment_first(self, texts: Sequence[str], split: list[list[str]], generator: np.random.Generator) -> list[str]:
        """Return the first of ``texts`` augmented, from one call of the generator for the words of all.

        A text that would lose every word needs one more random number, after its own. The generator is then reset to
        that position, and the remaining texts are left for the next call.
        """
        before = generator.bit_generator.state
        stays = (generator.random(sum(map(len, split))) >= self.ratio).tolist()
        result = []
        end = 0
        for text, words in zip(texts, split, strict=True):
            begin, end = end, end + len(words)
            keep = stays[begin:end]
            if False not in keep or len(words) == 1:
                result.append(text)
            elif True in keep:
                result.append(_join_words(text, words, keep))
            else:
                generator.bit_generator.state = before
                generator.random(end)
                keep[int(generator.integers(len(words)))] = True
                return [*result, _join_words(text, words, keep)]
        return result


def _join_words(text: str, words: list[str], keep: list[bool]) -> str:
    if has_no_spaces(text):
        return split_text(text).keep_words([place for place, stays in enumerate(keep) if stays])
    return " ".join(compress(words, keep))


def delete_words(split: SplitText, n: int, generator: np.random.Generator) -> str | None:
    """Return the text without ``n`` of its words, drawn at random; None if it has only one."""
    n_words = len(split.words)
    n = min(n, n_words - 1)
    if n < 1:
        return None
    deleted = set(generator.permutation(n_words)[:n].tolist())
    return split.keep_words([place for place in range(n_words) if place not in deleted])
