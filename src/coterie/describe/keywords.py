"""Keywords of clusters, words and phrases, by class-based TF-IDF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coterie.describe.phrases import Counts, Phrases, find_phrases
from coterie.describe.word_stream import read_words

# Words and phrases looked at for each keyword that is wanted: some are left out for saying what another says.
LOOKED_AT = 5


def cluster_keywords(
    texts: Sequence[str], labels: NDArray[np.int64], n_clusters: int, n_keywords: int = 10, *, phrases: bool = True
) -> list[tuple[str, ...]]:
    """The words and phrases that tell each cluster from the others, best first, in lower case.

    Class-based TF-IDF (Grootendorst, BERTopic, 2022): a cluster's texts are taken as one document; a word's share
    of it is weighted by ``log(1 + A / f)``, with ``f`` the word's count over all clusters and ``A`` the mean
    number of words in a cluster. No text counts a word more than twice.

    Function words are left out unless nothing else is there: English ones always, those of German, French, Spanish,
    Italian, Portuguese and Dutch where a clear share of all texts or of the cluster's holds some of them.

    Two or three words in a row are a phrase of a cluster when they stand together

    - at least three times, with nothing but white space between them, the first and the last no function word;
    - in at least 30 % of the occurrences of the rarest of them;
    - more often than by chance, given how often each occurs in the cluster (a likelihood ratio that chance reaches
      once in some thousand times), or hardly ever apart.

    Three words also need to make up most of one of the phrases of two within them. A phrase is scored like a word,
    times the number of its words that are no function words: it says that much more. A word of which one phrase
    holds nearly all (70 %) is not listed, as that phrase ranks before it; another word counts less by what phrases
    cover of it, but never less than half. Of phrases that share two words ("reset password", "reset my password")
    and of the forms of a word ("order", "ordered") the best is listed. English words that say little ("use",
    "want") count half and end no phrase.

    Parameters
    ----------
    texts, labels:
        One entry a row; rows labelled -1 are in no cluster.
    n_clusters, n_keywords:
        How many clusters there are (some may be empty), and how many keywords each gets at most.
    phrases:
        Without them, single words alone are listed.
    """
    stream = read_words(texts, rows_by_cluster(labels, n_clusters))
    counts = [np.unique(ids[ids >= 0], return_counts=True) for ids, _ in stream]
    overall = np.zeros(len(stream.words))
    for words, count in counts:
        overall[words] += count
    if all(is_function_word[words].all() for (words, _), (_, is_function_word) in zip(counts, stream, strict=True)):
        # Function words are better than nothing.
        stream = stream.all_telling()
        phrases = False
    telling = [
        (words[~is_function_word[words]], count[~is_function_word[words]])
        for (words, count), (_, is_function_word) in zip(counts, stream, strict=True)
    ]
    average = sum(float(count.sum()) for _, count in telling) / max(1, n_clusters)
    weights = np.log1p(average / np.maximum(overall, 1)) * np.where(stream.light, 0.5, 1)
    found = find_phrases(stream, counts) if phrases else None
    return [
        _best(stream.words, told, weights, None if found is None else found[k], average, n_keywords)
        for k, told in enumerate(telling)
    ]


def rows_by_cluster(labels: NDArray[np.int64], n_clusters: int) -> list[NDArray[np.int64]]:
    """The rows of each cluster, rising; all found in one go, not in one a cluster."""
    rows = np.flatnonzero(labels >= 0)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    begins = np.searchsorted(labels[rows], np.arange(n_clusters + 1))
    return [rows[begin:end] for begin, end in pairwise(begins)]


def _best(
    vocabulary: Sequence[str],
    told: Counts,
    weights: NDArray[np.float64],
    phrases: Phrases | None,
    average: float,
    n_keywords: int,
) -> tuple[str, ...]:
    """The best keywords of a cluster: ``told`` are its telling words and their counts, ``weights`` those of all."""
    words, counts = told
    size = max(1.0, float(counts.sum()))
    left = counts if phrases is None else phrases.uncovered(words, counts)
    # A word seen once may be chance: half a count of doubt is taken off each.
    scores = (left - 0.5) / size * weights[words]
    parts = words[:, None]
    if phrases is not None:
        of_phrases = phrases.weight * (phrases.count - 0.5) / size * np.log1p(average / phrases.overall)
        scores = np.concatenate((scores, of_phrases))
        parts = np.concatenate((np.pad(parts, ((0, 0), (0, 2)), constant_values=-1), phrases.parts))
    wanted = LOOKED_AT * n_keywords
    least = max(0.0, np.partition(scores, -wanted)[-wanted] if len(scores) > wanted else 0.0)
    candidates = []
    for i in np.flatnonzero(scores >= least).tolist():
        candidates.append((-float(scores[i]), tuple(vocabulary[part] for part in parts[i].tolist() if part >= 0)))
    return _distinct(sorted(candidates), frozenset(vocabulary[word] for word in words.tolist()), n_keywords)


def _distinct(
    candidates: Iterable[tuple[float, tuple[str, ...]]], telling: frozenset[str], n_keywords: int
) -> tuple[str, ...]:
    """The first keywords that do not say what a better one says.

    A word in another form is left out, and a phrase that shares two words with a better one; the one word that such
    a phrase adds is listed instead of it.
    """
    chosen: list[tuple[str, ...]] = []
    for _, keyword in candidates:
        if len(chosen) == n_keywords:
            break
        for other in chosen if len(keyword) > 1 else ():
            added = tuple(word for word in keyword if word in telling and not _is_in(word, other))
            if len(other) > 1 and len(added) < 2 <= len(telling.intersection(keyword)) - len(added):
                keyword = added
                break
        is_form = len(keyword) == 1 and any(_is_in(keyword[0], other) for other in chosen if keyword[0] not in other)
        if keyword and not is_form and keyword not in chosen:
            chosen.append(keyword)
    return tuple(" ".join(keyword) for keyword in chosen)


def _is_in(word: str, keyword: tuple[str, ...]) -> bool:
    return any(word == other or same_word(word, other) for other in keyword)


def same_word(first: str, second: str) -> bool:
    """Whether two words look like forms of one: "order" and "ordered", "fee" and "fees", "currency" and "currencies".

    They are alike but for a short ending, in words of letters alone.
    """
    if first[:3] != second[:3] or not (first.isalpha() and second.isalpha()):
        return False
    shorter, longer = sorted((first, second), key=len)
    if longer in (f"{shorter}s", f"{shorter}es"):
        return True
    common = next((i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return common >= 5 and 3 * common >= 2 * len(longer)
