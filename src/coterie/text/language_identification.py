"""Which language a text is in, by its function words; and which clusters are languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coterie.text.function_words import OTHER_LANGUAGES, english_function_words

WORD = re.compile(r"[^\W\d_]+")
# From this share of the clusters' information on, the language is what parts them.
SPLIT_FROM = 0.5
# A language that fewer of the texts are in is no part of a split.
LEAST_SHARE = 0.05
# Texts of a cluster that are looked at to tell its language.
LOOKED_AT = 200


def languages_of(texts: Sequence[str]) -> list[str]:
    """The language of each text that has most of its function words; "" where there are none, or as many of two."""
    known = {"english": english_function_words(), **OTHER_LANGUAGES}
    found = []
    for text in texts:
        words = WORD.findall(text.lower())
        counts = sorted(((sum(word in each for word in words), name) for name, each in known.items()), reverse=True)
        found.append(counts[0][1] if counts[0][0] > counts[1][0] else "")
    return found


def language_split(texts: Sequence[str], labels: NDArray[np.int64]) -> tuple[str, ...]:
    """The languages, the commonest first, where they are what parts the clusters; else nothing.

    Told by how much of the clusters' entropy is information on the language, among texts whose language shows.
    """
    names, languages, counts = np.unique(np.array(languages_of(texts)), return_inverse=True, return_counts=True)
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
    if entropy <= 0 or information / entropy < SPLIT_FROM:
        return ()
    return tuple(str(names[i]) for i in sorted(common, key=lambda i: -counts[i]))


def cluster_languages(texts: Sequence[str], members: Sequence[NDArray[np.int64]]) -> list[str | None]:
    """Of each cluster (its rows of ``texts``) the language, where that sets it apart; else ``None``.

    A cluster is set apart where most of its texts are in a language that is not the commonest of the run. Of large
    clusters some texts are looked at, spread over their rows.

    Examples
    --------
    >>> texts = ["where is my parcel", "what is this charge", "wo ist mein Paket", "ich warte auf das Paket"]
    >>> cluster_languages(texts, [np.array([0, 1]), np.array([2, 3])])
    [None, 'german']
    """
    found: list[str | None] = []
    spoken: dict[str, float] = {}
    for rows in members:
        looked_at = rows[np.linspace(0, len(rows) - 1, min(len(rows), LOOKED_AT)).astype(np.int64)]
        counts = Counter(filter(None, languages_of([texts[row] for row in looked_at])))
        language, count = counts.most_common(1)[0] if counts else (None, 0)
        found.append(language if 2 * count > len(looked_at) else None)
        for each, times in counts.items():
            spoken[each] = spoken.get(each, 0.0) + times * len(rows) / len(looked_at)
    usual = max(spoken, key=spoken.__getitem__, default=None)
    return [None if language == usual else language for language in found]
