"""Misspell words by one character."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from coterie.checks import check_number
from coterie.text.augmentation.base import Augmenter, words_to_change
from coterie.text.augmentation.eda import check_operations
from coterie.text.word_segmentation import has_no_spaces, split_text

# The possible changes of a character.
OPERATIONS = ("substitute", "delete", "insert", "swap")
# Zero-width non-joiner and joiner: they belong to the character before them.
_JOINERS = frozenset("\u200c\u200d")


@dataclass(frozen=True)
class CharSwap(Augmenter):
    """Change one character in a share of ``ratio`` of the words, at least in one.

    A character is a letter with its combining marks. In words of Latin letters, new letters are a to z, in the case of
    the letter beside them; in other scripts, they are drawn from the letters of the same script in the same text.
    Digits and punctuation are never changed. A word of one letter is neither deleted nor replaced; it only gets a
    second letter. In a script without spaces, which has no word borders, a single character may be replaced. A text
    without letters is left unchanged.

    Parameters
    ----------
    ratio: share of the words to change, between 0 and 1.
    operations: the operations to draw from: ``substitute``, ``delete``, ``insert`` and ``swap`` (two neighbours).
    """

    ratio: float = 0.1
    operations: tuple[str, ...] = OPERATIONS

    def check(self) -> None:
        check_number("ratio", self.ratio, above=0, below=1)
        check_operations(self.operations, OPERATIONS)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        return [self._misspell(text, generator) for text in texts]

    def _misspell(self, text: str, generator: np.random.Generator) -> str:
        split = split_text(text)
        words = list(split.words)
        left = words_to_change(self.ratio, len(words))
        letters_of_text = _Letters(text)
        for place in generator.permutation(len(words)).tolist():
            other = self._change_word(words[place], letters_of_text, generator)
            if other is not None:
                words[place] = other
                left -= 1
                if left == 0:
                    break
        return split.replace_words(words)

    def _change_word(self, word: str, letters_of_text: _Letters, generator: np.random.Generator) -> str | None:
        """Return the word with one character changed; None if no operation can change it."""
        characters = list(word) if word.isascii() else graphemes(word)
        letters = [i for i, character in enumerate(characters) if character[0].isalpha()]
        if not letters:
            return None
        operations = list(self.operations)
        while operations:
            operation = operations.pop(int(generator.integers(len(operations))))
            if len(letters) == 1 and operation != "insert" and not (operation == "substitute" and has_no_spaces(word)):
                continue
            if operation == "swap":
                pairs = [i for i in letters if i + 1 in letters and characters[i] != characters[i + 1]]
                if pairs:
                    i = pairs[int(generator.integers(len(pairs)))]
                    characters[i], characters[i + 1] = characters[i + 1], characters[i]
                    return "".join(characters)
                continue
            i = letters[int(generator.integers(len(letters)))]
            if operation == "delete":
                return "".join(characters[:i] + characters[i + 1 :])
            new_letter = letters_of_text.draw(characters[i], generator)
            if new_letter is not None:
                return "".join([*characters[:i], new_letter, *characters[i + (operation == "substitute") :]])
        return None


class _Letters:
    """The letters from which new letters of a text are drawn."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._by_script: dict[str, list[str]] | None = None

    def draw(self, like: str, generator: np.random.Generator) -> str | None:
        """Draw another letter of the script and case of ``like``; None if the text has no other."""
        if _script(like[0]) == "LATIN":
            pool = [letter for letter in string.ascii_lowercase if letter != like.lower()]
        else:
            if self._by_script is None:
                self._by_script = {}
                for character in dict.fromkeys(graphemes(self._text)):
                    if character[0].isalpha():
                        self._by_script.setdefault(_script(character[0]), []).append(character)
            pool = [letter for letter in self._by_script.get(_script(like[0]), []) if letter.lower() != like.lower()]
        if not pool:
            return None
        new_letter = pool[int(generator.integers(len(pool)))]
        return new_letter.upper() if like.isupper() else new_letter.lower()


def graphemes(text: str) -> list[str]:
    """Return the characters of ``text``, each with its combining marks."""
    found: list[str] = []
    for character in text:
        joined = found and (character in _JOINERS or found[-1][-1] == "\u200d")
        if found and (joined or unicodedata.category(character)[0] == "M"):
            found[-1] += character
        else:
            found.append(character)
    return found


@lru_cache(maxsize=10_000)
def _script(character: str) -> str:
    """Return the script of a letter, the first word of its Unicode name: LATIN, CYRILLIC, CJK, THAI."""
    return unicodedata.name(character, "unknown").split()[0]
