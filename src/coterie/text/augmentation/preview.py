"""Augment the distinct texts of a corpus as training would, measure the result, and write it to a file."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from coterie.files import atomic_file
from coterie.text.augmentation.base import Augmenter, check_changes, unchanged_share
from coterie.text.augmentation.cache import augment_with_cache, is_cached
from coterie.text.augmentation.registry import count_views, parse_views
from coterie.text.corpus import Corpus
from coterie.text.word_segmentation import has_no_spaces, split_words

WordChange: TypeAlias = Literal["same", "removed", "added"]

# Endings of the files that write_views can write.
ENDINGS = (".csv", ".jsonl", ".txt")


@dataclass(frozen=True)
class AugmentedView:
    """One augmented view of the distinct texts of a corpus.

    Attributes
    ----------
    augmenter:
        The augmenter with its settings, as :meth:`~coterie.text.augmentation.base.Augmenter.describe` writes them.
    texts:
        One augmented text per distinct text.
    unchanged_share:
        The share of texts that the augmenter left unchanged.
    seconds:
        Seconds that augmenting the texts, or reading them from the cache, took.
    from_cache:
        Whether the texts were read from the cache.
    """

    augmenter: str
    texts: list[str]
    unchanged_share: float
    seconds: float
    from_cache: bool

    @property
    def texts_per_second(self) -> float:
        """How many texts were augmented or read per second."""
        return len(self.texts) / max(self.seconds, 1e-9)


def augmented_views(
    corpus: Corpus,
    spec: str,
    *,
    ratio: float | None = None,
    seed: int = 0,
    device: str = "auto",
    use_cache: bool = True,
) -> list[AugmentedView]:
    """Return the one or two views that ``spec`` describes; raise if an augmenter changes no text at all.

    Parameters
    ----------
    corpus:
        Its distinct texts are augmented.
    spec:
        As for :func:`~coterie.text.augmentation.registry.parse_views`.
    ratio:
        The share of words to change where ``spec`` gives none; the augmenter's default if not given.
    seed:
        The same seed gives the same texts.
    device:
        Where a language model runs.
    use_cache:
        Whether texts made by a language model are read from and written to the disk cache.
    """
    augmenters = parse_views(spec, ratio, device=device)[: min(2, count_views(spec))]
    views = []
    for place, augmenter in enumerate(augmenters):
        view = _augmented_view(augmenter, corpus.distinct, [seed, place], use_cache=use_cache)
        check_changes(view.augmenter, corpus.distinct, view.texts)
        views.append(view)
    return views


def _augmented_view(
    augmenter: Augmenter, texts: Sequence[str], seed: Sequence[int], *, use_cache: bool
) -> AugmentedView:
    # Augmenting by rules is faster than reading the cache.
    use_cache = use_cache and augmenter.slow
    cached = use_cache and is_cached(augmenter, texts, seed)
    began = time.perf_counter()
    if use_cache:
        augmented = augment_with_cache(augmenter, texts, seed)
    else:
        augmented = augmenter.augment(texts, np.random.default_rng(seed))
    seconds = time.perf_counter() - began
    return AugmentedView(augmenter.describe(), augmented, unchanged_share(texts, augmented), seconds, cached)


def column_names_of(views: Sequence[AugmentedView]) -> list[str]:
    """Return the names of the columns: the original text, then each view."""
    if len(views) == 1:
        return ["original", "augmented"]
    return ["original", *(f"augmented_{number}" for number in range(1, len(views) + 1))]


def views_to_dict(corpus: Corpus, views: Sequence[AugmentedView], n_examples: int) -> dict[str, Any]:
    """Return statistics of the views and the first ``n_examples`` texts, ready for JSON."""
    names = column_names_of(views)
    examples = zip(corpus.distinct[:n_examples], *(view.texts[:n_examples] for view in views), strict=True)
    return {
        "rows": len(corpus),
        "empty_rows": int(corpus.empty.sum()),
        "distinct_texts": len(corpus.distinct),
        "views": [
            {
                "augmenter": view.augmenter,
                "unchanged_share": view.unchanged_share,
                "seconds": view.seconds,
                "texts_per_second": view.texts_per_second,
                "from_cache": view.from_cache,
            }
            for view in views
        ],
        "examples": [dict(zip(names, texts, strict=True)) for texts in examples],
    }


def write_views(path: Path, corpus: Corpus, views: Sequence[AugmentedView]) -> None:
    """Write one row per row of the corpus: its text and each view (TXT: the views alone, one line per text).

    Rows with equal texts get equal augmented texts; empty rows stay empty.
    """
    names = column_names_of(views)
    rows = (
        [text, *(text if place < 0 else view.texts[place] for view in views)]
        for text, place in zip(corpus.texts, corpus.distinct_index.tolist(), strict=True)
    )
    ending = path.suffix.lower()
    with atomic_file(path) as stream:
        if ending == ".jsonl":
            for row in rows:
                stream.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")
        elif ending == ".txt":
            for row in rows:
                # Line ends inside a text become spaces, so that it stays on one line; a tab separates two views.
                stream.write("\t".join(" ".join(text.split()) for text in row[1:]) + "\n")
        else:
            # Every cell is quoted: otherwise, a single carriage return in a text would end the row.
            writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(rows)


def word_changes(original: str, augmented: str) -> list[tuple[WordChange, str]]:
    """Return the words of two texts as runs that are the same, removed or added, in reading order.

    Where the script is written with spaces, a single space of kind ``same`` separates two runs.

    Examples
    --------
    >>> word_changes("where is my parcel", "where is it")
    [('same', 'where is'), ('same', ' '), ('removed', 'my parcel'), ('same', ' '), ('added', 'it')]
    """
    before, after = split_words(original), split_words(augmented)
    changes: list[tuple[WordChange, str]] = []
    last = ""
    for operation, a, a_end, b, b_end in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        removed = before[a:a_end] if operation != "equal" else []
        kind_after: WordChange = "same" if operation == "equal" else "added"
        kinds: tuple[tuple[WordChange, list[str]], ...] = (("removed", removed), (kind_after, after[b:b_end]))
        for kind, words in kinds:
            if words:
                if _space(last, words[0]):
                    changes.append(("same", " "))
                changes.append((kind, "".join(_space(left, word) + word for left, word in pairwise(["", *words]))))
                last = words[-1]
    return changes


def _space(left: str, right: str) -> str:
    """Return the separator of two words: nothing if one of them has a script without spaces, else a space."""
    return "" if left == "" or has_no_spaces(left) or has_no_spaces(right) else " "
