"""Identify the language of texts and clusters by function words, and clusterings that only separate languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coterie.text.function_words import OTHER_LANGUAGES, english_function_words

WORD = re.compile(r"[^\W\d_]+")
# Smallest share of the clusters' entropy that languages explain where clusters mainly separate languages: a half.
LEAST_EXPLAINED_SHARE = 0.5
# Smallest share of the texts in a language that counts: below it, most texts match a single function word by chance.
LEAST_SHARE = 0.05
# Smallest share of a cluster's texts in a language that is named, where most are in other languages than the run's.
LEAST_NAMED = 0.2
# Most texts per cluster whose language is identified: enough for a majority, and fast for large clusters.
TEXTS_PER_CLUSTER = 200


def identify_languages(texts: Sequence[str]) -> list[str]:
    """Return for each text the language with most function words in it; "" for none, or a tie of two languages."""
    function_words = {"english": english_function_words(), **OTHER_LANGUAGES}
    found = []
    for text in texts:
        words = WORD.findall(text.lower())
        counts = sorted(
            ((sum(word in each for word in words), name) for name, each in function_words.items()), reverse=True
        )
        found.append(counts[0][1] if counts[0][0] > counts[1][0] else "")
    return found


def find_language_split(texts: Sequence[str], labels: NDArray[np.int64]) -> tuple[str, ...]:
    """Return the languages, most frequent first, if the clusters mainly separate languages; otherwise an empty tuple.

    They do if the mutual information of cluster and language is at least half of the clusters' entropy, over the texts
    whose language is identified.
    """
    names, languages, counts = np.unique(np.array(identify_languages(texts)), return_inverse=True, return_counts=True)
    common = [i for i, name in enumerate(names) if name and counts[i] >= LEAST_SHARE * len(texts)]
    shown = np.isin(languages, common)
    if len(common) < 2:
        return ()
    table = np.zeros((int(labels.max()) + 1, len(names)))
    np.add.at(table, (labels[shown], languages[shown]), 1)
    table /= table.sum()
    by_cluster, by_language = table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(by_cluster, by_language)
    information = (table[table > 0] * np.log(table[table > 0] / expected[table > 0])).sum()
    entropy = -(by_cluster[by_cluster > 0] * np.log(by_cluster[by_cluster > 0])).sum()
    if entropy <= 0 or information / entropy < LEAST_EXPLAINED_SHARE:
        return ()
    return tuple(str(names[i]) for i in sorted(common, key=lambda i: -counts[i]))


def identify_cluster_languages(texts: Sequence[str], members: Sequence[NDArray[np.int64]]) -> list[str | None]:
    """Return the language of each cluster (its rows of ``texts``) if it differs from that of the run; else ``None``.

    It differs if most of the cluster's texts are in languages that are not the most frequent one of the run; several
    are joined by commas, the most frequent first. In a large cluster, the language of ``TEXTS_PER_CLUSTER`` texts,
    evenly spaced over its rows, is identified.

    Examples
    --------
    >>> texts = ["where is my parcel", "what is this charge", "wo ist mein Paket", "ich warte auf das Paket"]
    >>> identify_cluster_languages(texts, [np.array([0, 1]), np.array([2, 3])])
    [None, 'german']
    """
    found: list[tuple[Counter[str], int]] = []
    texts_per_language: dict[str, float] = {}
    for rows in members:
        some = rows[np.linspace(0, len(rows) - 1, min(len(rows), TEXTS_PER_CLUSTER)).astype(np.int64)]
        counts = Counter(filter(None, identify_languages([texts[row] for row in some])))
        found.append((counts, len(some)))
        for each, times in counts.items():
            texts_per_language[each] = texts_per_language.get(each, 0.0) + times * len(rows) / len(some)
    most_frequent = max(texts_per_language, key=texts_per_language.__getitem__, default=None)
    return [_others_than(most_frequent, counts, size) for counts, size in found]


def _others_than(most_frequent: str | None, counts: Counter[str], size: int) -> str | None:
    """Return the languages of a cluster of ``size`` texts if most are in others than the most frequent of the run."""
    others = [(name, count) for name, count in counts.most_common() if name != most_frequent]
    if 2 * sum(count for _, count in others) <= size:
        return None
    return ", ".join(name for name, count in others if count >= LEAST_NAMED * size) or None
