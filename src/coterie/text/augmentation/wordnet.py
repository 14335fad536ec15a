"""Look up synonyms of English words in the table that ships with the package (see data/LICENSE)."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

TABLE = Path(__file__).parent / "data" / "wordnet_synonyms.tsv.gz"

# English words with a grammatical function but little meaning: they get no synonyms.
_STOP_WORDS = """
a an the this that these those such same own
i me my mine myself we us our ours ourselves you your yours yourself yourselves
he him his himself she her hers herself it its itself they them their theirs themselves one ones
who whom whose which what when where why how whoever whatever whichever whenever wherever
am is are was were be been being isn't aren't wasn't weren't ain't
have has had having haven't hasn't hadn't do does did doing done don't doesn't didn't
can could will would shall should may might must ought cannot can't couldn't won't wouldn't shan't shouldn't
mayn't mightn't mustn't needn't oughtn't
i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll
we're we've we'd we'll they're they've they'd they'll that's that'd that'll there's there'll here's
who's who'd who'll what's what're what'll when's where's why's how's let's
and or but nor so yet if then else than because as while until till unless although though whereas whether
of at by for with about against between among into through during before after above below to from up down in out
on off over under onto upon within without toward towards across along around behind beside besides beyond near
per via except since despite
again further once here there also just only even still already always never ever often
all any both each every few more most much many some other another several either neither
no not none nothing nobody nowhere something somebody someone somewhere anything anybody anyone anywhere
everything everybody everyone everywhere
too very quite rather almost enough now
dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt shouldnt havent hasnt hadnt im ive
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# Endings of inflected forms with the endings of their base forms, tried in this order: nouns, verbs, adjectives.
_ENDINGS = (
    ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("zes", "z"), ("men", "man"), ("ies", "y"),
    ("ves", "f"), ("s", ""), ("es", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"),
    ("er", ""), ("er", "e"), ("est", ""), ("est", "e"), ("ier", "y"), ("iest", "y"),
)  # fmt: skip
# Fewest letters of a base form: "css" and "ios" are not plurals.
_SHORTEST_BASE = 3
# The punctuation before a word, the word, and the possessive and punctuation after it.
_CORE = re.compile(r"(\W*)(\w|\w.*?\w)((?:['’][sS])?\W*)", flags=re.DOTALL)


@dataclass(frozen=True, slots=True)
class EnglishWord:
    """A word of a text with its synonyms.

    Attributes
    ----------
    before, core, after: the punctuation before the word, the word itself, and its possessive and punctuation; joined,
        they are the word as it stands in the text.
    synonyms: in lower case, most frequent sense first; never empty.
    """

    before: str
    core: str
    after: str
    synonyms: tuple[str, ...]

    def in_place(self, synonym: str) -> str:
        """Return ``synonym`` with this word's capitals and punctuation."""
        if self.core.isupper():
            synonym = synonym.upper()
        elif self.core[0].isupper():
            synonym = synonym[0].upper() + synonym[1:]
        return f"{self.before}{synonym}{self.after}"


@lru_cache(maxsize=100_000)
def look_up(word: str) -> EnglishWord | None:
    """Return a word of a text with its synonyms; None for stop words and words without synonyms."""
    match = _CORE.fullmatch(word)
    if match is None:
        return None
    before, core, after = match.groups()
    plain = core.lower().replace("’", "'")
    if plain in STOP_WORDS or (plain + after.lower().replace("’", "'")).rstrip('.,;:!?)"') in STOP_WORDS:
        return None
    synonyms = synonyms_of(plain)
    return EnglishWord(before, core, after, synonyms) if synonyms else None


def synonyms_of(word: str) -> tuple[str, ...]:
    """Return the synonyms of a lower-case word, or of its base form; most frequent sense first.

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
    """Return the base forms that ``word`` may be inflected from."""
    bases = [word.removesuffix(ending) + new for ending, new in _ENDINGS if word.endswith(ending)]
    if word.endswith("ss"):
        return []
    # "stopped" and "biggest" double a consonant.
    bases += [base[:-1] for base in bases if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeiouls"]
    return [base for base in bases if len(base) >= _SHORTEST_BASE]


@cache
def _table() -> dict[str, str]:
    """Return the table: each word with the rest of its line, split into synonyms only on look-up."""
    lines = gzip.decompress(TABLE.read_bytes()).decode("ascii").splitlines()
    return dict(line.split("\t", 1) for line in lines)
