"""Synonyms of English words, from the table that ships with the package (see data/LICENSE)."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from coterie.text.augmentation.stop_words import STOP_WORDS

TABLE = Path(__file__).parent / "data" / "wordnet_synonyms.tsv.gz"

# An ending of an inflected form and what stands there in the base form, tried in this order: nouns, verbs, adjectives.
_ENDINGS = (
    ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("zes", "z"), ("men", "man"), ("ies", "y"),
    ("ves", "f"), ("s", ""), ("es", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"),
    ("er", ""), ("er", "e"), ("est", ""), ("est", "e"), ("ier", "y"), ("iest", "y"),
)  # fmt: skip
_SHORTEST_BASE = 3  # "css" and "ios" are no plurals
# A word, what clings to it in front, and the possessive and punctuation behind it.
_CORE = re.compile(r"(\W*)(\w|\w.*?\w)((?:['’][sS])?\W*)", flags=re.DOTALL)


@dataclass(frozen=True, slots=True)
class English:
    """A word of a text with its synonyms.

    Attributes
    ----------
    before, core, after: the word without and what clings to it; together they are what stands in the text.
    synonyms: lower-case, the commonest sense first; never empty.
    """

    before: str
    core: str
    after: str
    synonyms: tuple[str, ...]

    def dressed(self, synonym: str) -> str:
        """``synonym`` with this word's capitals and punctuation."""
        if self.core.isupper():
            synonym = synonym.upper()
        elif self.core[0].isupper():
            synonym = synonym[0].upper() + synonym[1:]
        return f"{self.before}{synonym}{self.after}"


@lru_cache(maxsize=100_000)
def look_up(word: str) -> English | None:
    """The word as it stands in a text with its synonyms; None for stop words and words without any."""
    match = _CORE.fullmatch(word)
    if match is None:
        return None
    before, core, after = match.groups()
    plain = core.lower().replace("’", "'")
    if plain in STOP_WORDS or (plain + after.lower().replace("’", "'")).rstrip('.,;:!?)"') in STOP_WORDS:
        return None
    synonyms = synonyms_of(plain)
    return English(before, core, after, synonyms) if synonyms else None


def synonyms_of(word: str) -> tuple[str, ...]:
    """Synonyms of a lower-case word, or of its base form; the commonest sense first.

    Examples
    --------
    >>> synonyms_of("queries")
    ('question', 'inquiry', 'enquiry', 'interrogation')
    """
    table = _table()
    found = table.get(word)
    if found is None:
        base = next((base for base in _bases(word) if base in table), None)
        if base is None or base in STOP_WORDS:
            return ()
        found = table[base]
    if found.startswith("="):
        found = table[found[1:]]
    return tuple(synonym for synonym in found.split("|") if synonym != word)


def _bases(word: str) -> list[str]:
    """What ``word`` may be an inflected form of."""
    bases = [word.removesuffix(ending) + new for ending, new in _ENDINGS if word.endswith(ending)]
    if word.endswith("ss"):
        return []
    # "stopped" and "biggest" double a consonant.
    bases += [base[:-1] for base in bases if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeiouls"]
    return [base for base in bases if len(base) >= _SHORTEST_BASE]


@cache
def _table() -> dict[str, str]:
    """Each word with its line's right half; cut into synonyms only when asked for."""
    lines = gzip.decompress(TABLE.read_bytes()).decode("ascii").splitlines()
    return dict(line.split("\t", 1) for line in lines)
