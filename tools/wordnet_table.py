"""Write the table of synonyms that ships with the package, from the database files of WordNet 3.0.

    python tools/wordnet_table.py FOLDER            FOLDER holds data.noun, index.noun, cntlist.rev, noun.exc, ...
    python tools/wordnet_table.py FOLDER --out FILE

The Debian package `wordnet-base` installs the files in /usr/share/wordnet. The same files give the same bytes
(with the same version of zlib).

A line is a word, a tab and its synonyms with `|` between them: all in lower case, most frequent sense first, over
nouns, verbs, adjectives and adverbs together. A line with `=` before its only entry names the base form of an
irregular form (`children`, `=child`). Words are single; synonyms may have several words. Left out are

- single letters, entries with a digit or a dot, and Roman numbers;
- senses that WordNet marks as slurs or obscenities, and words that are hardly used in another sense: they must not
  appear in augmented texts;
- names that are spelt like other words: a page is not Thomas Nelson Page;
- rare nouns and adjectives that look like a form of a frequent word: `using` means `use`, not exploitation.
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "coterie" / "text" / "augmentation" / "data" / "wordnet_synonyms.tsv.gz"
# Parts of speech, as the files are named.
PARTS = ("noun", "verb", "adj", "adv")
# The digit of a sense key, after the per cent sign; adjective satellites (5) are listed among the adjectives.
PART_OF_DIGIT = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}
# Usage domains of WordNet whose words are left out.
UNWANTED_USAGES = ("ethnic_slur", "obscenity", "disparagement")
# Uses in the tagged texts from which on a word with an unwanted sense stays, in its other senses ("boy", "suit").
FEW_USES = 5
# Glosses of unwanted senses that have no usage domain.
UNWANTED_GLOSS = re.compile(r"\b(obscene|offensive) (terms?|words?|names?)\b")
# A word of the table, and an entry of it; not a Roman number.
SINGLE_WORD = re.compile(r"(?![ivx]+$)[a-z][a-z'-]*[a-z]")
LEMMA = re.compile(r"(?![ivx]+$)[a-z][a-z' -]*[a-z]")
# An ending of a verb form and that of its base form.
VERB_ENDINGS = (("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"))


@dataclass(frozen=True)
class Synset:
    """Lemmas of one meaning in lower case; those of them that are names, and those that are left out."""

    lemmas: tuple[str, ...]
    names: frozenset[str]
    unwanted: frozenset[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=TABLE)
    options = parser.parse_args()
    options.out.write_bytes(table(options.folder))


def table(folder: Path) -> bytes:
    """Return the whole file, compressed."""
    synonyms = synonyms_of_words(folder)
    lines = [f"{word}\t{'|'.join(found)}" for word, found in synonyms.items()]
    lines += [f"{form}\t={base}" for form, base in irregular_forms(folder, set(synonyms)).items()]
    content = "".join(f"{line}\n" for line in sorted(lines))
    # No time, name or system in the header, so that the same table is the same file.
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as stream:
        stream.write(content.encode("ascii"))
    return packed.getvalue()


def synonyms_of_words(folder: Path) -> dict[str, list[str]]:
    """Return each single word with the other members of its synsets, most frequent sense first."""
    counts = sense_counts(folder / "cntlist.rev")
    uses: dict[str, int] = defaultdict(int)
    for (lemma, _, _), count in counts.items():
        uses[lemma.replace("_", " ")] += count
    synsets = {part: read_synsets(folder, part) for part in PARTS}
    unwanted = {lemma for found in synsets.values() for synset in found.values() for lemma in synset.unwanted}
    never = {lemma for lemma in unwanted if uses[lemma] < FEW_USES}

    senses: dict[str, list[tuple[int, int, int, Synset]]] = defaultdict(list)
    for place, part in enumerate(PARTS):
        for word, offsets in index(folder / f"index.{part}"):
            if SINGLE_WORD.fullmatch(word) and word not in never:
                for number, offset in enumerate(offsets, start=1):
                    synset = synsets[part][offset]
                    if word not in synset.unwanted:
                        senses[word].append((-counts.get((word, part, number), 0), number, place, synset))
    irregular = exceptions(folder / "verb.exc")
    found = {}
    for word, entries in senses.items():
        if not uses[word] and any(uses[base] for base in verb_bases(word, irregular)):
            continue
        ordered = [synset for *_, synset in sorted(entries, key=lambda entry: entry[:3])]
        # A page of a book is not Thomas Nelson Page; Paris is only a name.
        ordered = [synset for synset in ordered if word not in synset.names] or ordered
        others = dict.fromkeys(other for synset in ordered for other in synset.lemmas if other not in synset.unwanted)
        wanted = [other for other in others if other != word and never.isdisjoint((other, *re.split("[ -]", other)))]
        if wanted:
            found[word] = wanted
    return found


def verb_bases(word: str, irregular: dict[str, list[str]]) -> list[str]:
    """Return the verbs that ``word`` could be a form of."""
    by_ending = [word.removesuffix(ending) + new for ending, new in VERB_ENDINGS if word.endswith(ending)]
    return by_ending + irregular.get(word, [])


def irregular_forms(folder: Path, known: set[str]) -> dict[str, str]:
    """Return irregular forms with their base, where only the base has synonyms: ``children``, ``child``."""
    forms: dict[str, str] = {}
    for part in PARTS:
        for form, bases in exceptions(folder / f"{part}.exc").items():
            base = next((base for base in bases if base in known and base != form), None)
            if base is not None and SINGLE_WORD.fullmatch(form) and form not in known:
                forms.setdefault(form, base)
    return forms


def exceptions(path: Path) -> dict[str, list[str]]:
    """Return irregular forms with their base forms."""
    lines = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    return {form: bases for form, *bases in lines}


def sense_counts(path: Path) -> dict[tuple[str, str, int], int]:
    """Return how often each sense (lemma, part of speech, number) occurs in the texts that WordNet tagged."""
    counts = {}
    for line in path.read_text(encoding="ascii").splitlines():
        key, number, count = line.split()
        lemma, _, rest = key.partition("%")
        counts[lemma, PART_OF_DIGIT[rest[0]], int(number)] = int(count)
    return counts


def index(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each lemma with the offsets of its synsets, most frequent first."""
    for line in records(path):
        fields = line.split()
        yield fields[0], fields[-int(fields[2]) :]


def read_synsets(folder: Path, part: str) -> dict[str, Synset]:
    """Return the synsets of a part of speech by their offset."""
    marks = {
        offset for lemma, offsets in index(folder / "index.noun") if lemma in UNWANTED_USAGES for offset in offsets
    }
    found = {}
    for line in records(folder / f"data.{part}"):
        data, _, gloss = line.partition(" | ")
        fields = data.split()
        size = int(fields[3], 16)
        # An adjective may end in a marker of its place, such as (a) or (ip).
        raw = [re.sub(r"\(\w+\)$", "", fields[4 + 2 * i]) for i in range(size)]
        lemmas = [lemma.replace("_", " ").lower() for lemma in raw]
        pointers = fields[5 + 2 * size :]
        unwanted = set(lemmas) if UNWANTED_GLOSS.search(gloss) else set()
        for i in range(0, 4 * int(fields[4 + 2 * size]), 4):
            symbol, offset, _, ends = pointers[i : i + 4]
            if symbol == ";u" and offset in marks:
                source = int(ends[:2], 16)  # 0 stands for the whole synset
                unwanted |= set(lemmas) if source == 0 else {lemmas[source - 1]}
        names = {lemma.lower() for lemma in raw if lemma[0].isupper()}
        found[fields[0]] = Synset(
            tuple(lemma for lemma in lemmas if LEMMA.fullmatch(lemma)), frozenset(names), frozenset(unwanted)
        )
    return found


def records(path: Path) -> Iterator[str]:
    """Return the lines after the licence, which is indented by two spaces."""
    return (line for line in path.read_text(encoding="ascii").splitlines() if not line.startswith("  "))


if __name__ == "__main__":
    main()
