"""Split a text into words, also in scripts written without spaces, and join words to a natural text again.

White space separates words; punctuation stays with its word. Chinese, Japanese, Thai, Lao, Khmer and Burmese are
written without spaces; there, a word is the smallest unit that can be found without a dictionary:

- Han: one character;
- Hiragana: up to three characters; Katakana: a run, mostly a foreign word;
- Thai and Lao: a consonant with its vowels and tones, and a closing consonant;
- Khmer and Burmese: a syllable with its stacked consonants and marks.

A combining mark is never separated from its base. A dictionary (jieba, PyThaiNLP) would find better words; none is
used, so that the same seed gives the same texts on every machine, independently of installed packages.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

_HAN = "\u2e80-\u2fd5\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_HAN_REPEATED = "\u3005\u303b"
_HIRAGANA = "\u3041-\u3096\u309d\u309e"
_HIRAGANA_SMALL = "\u3041\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087\u308e\u3099\u309a\u30fc"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\u3099\u309a"
_THAI = "\u0e01-\u0e4e\u0e50-\u0e59"
_LAO = "\u0e81-\u0edf"
_KHMER = "\u1780-\u17d3\u17dc-\u17e9"
_MYANMAR = "\u1000-\u1049\u1050-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"
_WITHOUT_SPACES = f"{_HAN}{_HAN_REPEATED}{_HIRAGANA}{_KATAKANA}{_THAI}{_LAO}{_KHMER}{_MYANMAR}"

# Thai and Lao have the same structure: vowels written first, consonants, marks above and below, vowels written after.
_BRAHMIC = (
    ("\u0e40-\u0e44", "\u0e01-\u0e2e", "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e", "\u0e30\u0e32\u0e33\u0e45\u0e46\u0e2f"),
    (
        "\u0ec0-\u0ec4",
        "\u0e81-\u0eae\u0edc-\u0edf",
        "\u0eb1\u0eb4-\u0ebc\u0ebd\u0ec8-\u0ece",
        "\u0eb0\u0eb2\u0eb3\u0ec6",
    ),
)
_THAI_AND_LAO = "|".join(
    # A consonant closes the unit before it if it carries no vowel of its own.
    f"[{before}]?[{consonant}][{marks}]*[{after}]*(?:[{consonant}](?![{marks}{after}]))?"
    for before, consonant, marks, after in _BRAHMIC
)
_KHMER_SYLLABLE = "[\u1780-\u17b3](?:\u17d2[\u1780-\u17b3]|[\u17b4-\u17d1\u17d3\u17dd])*"
_BURMESE_MARKS = (
    "\u102b-\u1038\u103a-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d"
)
_BURMESE_SYLLABLE = (
    f"[\u1000-\u102a\u103f\u1050-\u1055](?:\u1039[\u1000-\u1021]|[{_BURMESE_MARKS}])*"
    # A consonant with the killer mark closes the syllable.
    f"(?:[\u1000-\u1021][\u1037]?\u103a[{_BURMESE_MARKS}]*|\u1004\u103a\u1039[\u1000-\u1021][{_BURMESE_MARKS}]*)*"
)
_UNITS = "|".join(
    (
        f"[{_HAN}][{_HAN_REPEATED}]*",
        f"(?:[{_HIRAGANA}][{_HIRAGANA_SMALL}]*){{1,3}}",
        f"[{_KATAKANA}]+",
        _THAI_AND_LAO,
        "[\u0e50-\u0e59]+",
        _KHMER_SYLLABLE,
        "[\u17e0-\u17e9]+",
        _BURMESE_SYLLABLE,
        "[\u1040-\u1049]+",
        f"[{_WITHOUT_SPACES}]",  # what remains of these scripts
        rf"[^\s{_WITHOUT_SPACES}]*[^\W{_WITHOUT_SPACES}][^\s{_WITHOUT_SPACES}]*",  # another script in between
    )
)
_OPENING = "([{‘“«‹（［｛「『【〔〈《〖"
_PUNCTUATION = rf"[^\w\s{_WITHOUT_SPACES}]"
_CLOSING = rf"[^\w\s{_WITHOUT_SPACES}{re.escape(_OPENING)}]"
# Punctuation belongs to the unit before it, an opening bracket to the one after.
_UNIT = re.compile(rf"{_PUNCTUATION}*(?:{_UNITS}){_CLOSING}*|\S+")
_ANY_WITHOUT_SPACES = re.compile(f"[{_WITHOUT_SPACES}]")
_WHITE_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class SplitText:
    """The words of a text and the white space around them.

    Attributes
    ----------
    words: the words in order.
    gaps: one more than words: the white space before the first word, between each two (``""`` where two words touch,
        as in Chinese), and after the last. Gaps and words, joined in turn, are the text.
    """

    words: tuple[str, ...]
    gaps: tuple[str, ...]

    def replace_words(self, words: Sequence[str]) -> str:
        """Return the text with ``words`` in the places of its own."""
        gaps = self.gaps
        if "" in gaps[1:-1]:
            inner = [_gap(gap, *pair) for gap, pair in zip(gaps[1:-1], pairwise(words), strict=True)]
            gaps = (gaps[0], *inner, gaps[-1])
        return "".join(chain.from_iterable(zip(gaps, (*words, ""), strict=True)))

    def keep_words(self, places: Sequence[int]) -> str:
        """Return only the words at ``places`` (ascending), with one space where white space was between two of them."""
        words = [self.words[place] for place in places]
        if "" not in self.gaps[1:-1]:
            return " ".join(words)
        parts = words[:1]
        for before, after in pairwise(places):
            between = " " if any(self.gaps[before + 1 : after + 1]) else ""
            parts += [_gap(between, self.words[before], self.words[after]), self.words[after]]
        return "".join(parts)

    def insert_words(self, additions: Sequence[tuple[int, str]]) -> str:
        """Return the text with words added: ``(2, "word")`` adds one before the word at place 2.

        The place after the last word adds one at the end. Words added at one place keep their order.
        """
        at: dict[int, list[str]] = {}
        for place, word in additions:
            at.setdefault(place, []).append(word)
        words: list[str] = []
        gaps: list[str] = []
        for place in range(len(self.words) + 1):
            added = at.get(place, [])
            inner = 0 < place < len(self.words)
            words += added
            gaps += [" " if inner and self.gaps[place] else ""] * len(added)
            if place < len(self.words):
                words.append(self.words[place])
                gaps.append((" " if inner and self.gaps[place] else "") if added else self.gaps[place])
        return SplitText(tuple(words), (self.gaps[0], *gaps[1:], self.gaps[-1])).replace_words(words)


def split_words(text: str) -> list[str]:
    """Return the words of ``text``.

    Examples
    --------
    >>> split_words("Where is my parcel?")
    ['Where', 'is', 'my', 'parcel?']
    >>> split_words("我的包裹，在Berlin吗？")
    ['我', '的', '包', '裹，', '在', 'Berlin', '吗？']
    """
    if text.isascii() or not _ANY_WITHOUT_SPACES.search(text):
        return text.split()
    return list(split_text(text).words)


def split_text(text: str) -> SplitText:
    """Return the words of ``text`` with the gaps around them."""
    chunks = text.split()
    if not chunks:
        return SplitText((), (text,))
    spaces = _WHITE_SPACE.findall(text)
    leading = spaces.pop(0) if text[0].isspace() else ""
    trailing = spaces.pop() if text[-1].isspace() else ""
    if text.isascii() or not _ANY_WITHOUT_SPACES.search(text):
        return SplitText(tuple(chunks), (leading, *spaces, trailing))
    words: list[str] = []
    gaps = [leading]
    for i, chunk in enumerate(chunks):
        found = _units(chunk) if _ANY_WITHOUT_SPACES.search(chunk) else [chunk]
        if i:
            gaps.append(spaces[i - 1])
        gaps += [""] * (len(found) - 1)
        words += found
    return SplitText(tuple(words), (*gaps, trailing))


def _units(chunk: str) -> list[str]:
    units: list[str] = []
    for unit in _UNIT.findall(chunk):
        # A mark on a base of another script is a misspelling, but still belongs to it.
        if units and unicodedata.category(unit[0])[0] == "M":
            units[-1] += unit
        else:
            units.append(unit)
    return units


def has_no_spaces(word: str) -> bool:
    """Return whether ``word`` holds a character of a script that is written without spaces."""
    return not word.isascii() and _ANY_WITHOUT_SPACES.search(word) is not None


def _gap(gap: str, before: str, after: str) -> str:
    """Return the gap, or a space where two words of scripts with spaces would touch."""
    return gap or ("" if has_no_spaces(before) or has_no_spaces(after) else " ")
