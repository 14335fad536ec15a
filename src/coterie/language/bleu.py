"""Sentence BLEU: how much of a text's wording another one keeps."""

from __future__ import annotations

import math
import re
from collections import Counter

LONGEST = 4
_TOKEN = re.compile(r"\w+|[^\w\s]")


def sentence_bleu(candidate: str, reference: str) -> float:
    """BLEU of one text against another, from 0 (no word in common) to 1 (the same words in the same order).

    Up to four words in a row are compared; for two and more, one is added to the matches and to the total
    (Lin and Och 2004), since short texts seldom share four words in a row. Case does not count, punctuation does.

    >>> sentence_bleu("the parcel is late", "The parcel is late")
    1.0
    >>> round(sentence_bleu("the letter is late", "the parcel is late"), 3)  # (3/4 * 2/4 * 1/3 * 1/2) ** (1/4)
    0.5
    """
    ours, theirs = _TOKEN.findall(candidate.casefold()), _TOKEN.findall(reference.casefold())
    if not ours or not theirs:
        return 0.0
    logs = 0.0
    for length in range(1, LONGEST + 1):
        made, given = _runs(ours, length), _runs(theirs, length)
        matches = sum((made & given).values())
        if length == 1 and not matches:
            return 0.0
        extra = 0 if length == 1 else 1
        logs += math.log((matches + extra) / (made.total() + extra))
    brevity = min(0.0, 1 - len(theirs) / len(ours))
    return math.exp(logs / LONGEST + brevity)


def _runs(tokens: list[str], length: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1))
