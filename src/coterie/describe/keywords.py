"""Keywords of clusters, words and phrases, by class-based TF-IDF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coterie.describe.phrases import Counts, Phrases, find_phrases
from coterie.describe.word_stream import read_words

# Candidates per keyword: some are dropped because they repeat a better one.
CANDIDATES_PER_KEYWORD = 5


def cluster_keywords(
    texts: Sequence[str], labels: NDArray[np.int64], n_clusters: int, n_keywords: int = 10, *, phrases: bool = True
) -> list[tuple[str, ...]]:
    """Return the words and phrases that distinguish each cluster from the others, best first, in lower case.

    The score is class-based TF-IDF (Grootendorst, BERTopic, 2022): the texts of a cluster form one document; a word's
    share of it is weighted by ``log(1 + A / f)``, where ``f`` is the word's count over all clusters and ``A`` the mean
    number of words per cluster. A word counts at most twice per text.

    Function words are left out unless a cluster has no other words: English ones always; those of German, French,
    Spanish, Italian, Portuguese and Dutch where a clear share of all texts, or of the cluster's texts, has some.

    Two or three consecutive words are a phrase of a cluster when they occur together

    - at least three times, with only white space between them, and neither the first nor the last is a function word;
    - in at least 30 % of the occurrences of the rarest of them;
    - more often than by chance, given how often each occurs in the cluster (a likelihood ratio that chance exceeds
      about once in a thousand cases), or almost never apart.

    Three words must also make up most of one of the two phrases of two words within them. A phrase is scored like a
    word, times the number of its content words. A word that occurs almost only (70 %) in one phrase is not listed
    itself; for other words, occurrences within phrases are subtracted, but never more than half. Of phrases that share
    two words ("reset password", "reset my password") and of the forms of a word ("order", "ordered"), only the best is
    listed. English words of little content ("use", "want") count half and end no phrase.

    Parameters
    ----------
    texts, labels:
        One entry per row; rows labelled -1 are in no cluster.
    n_clusters, n_keywords:
        The number of clusters (some may be empty), and the largest number of keywords per cluster.
    phrases:
        ``False`` lists single words only.
    """
    stream = read_words(texts, rows_by_cluster(labels, n_clusters))
    counts = [np.unique(ids[ids >= 0], return_counts=True) for ids, _ in stream]
    overall = np.zeros(len(stream.words))
    for words, count in counts:
        overall[words] += count
    if all(is_function_word[words].all() for (words, _), (_, is_function_word) in zip(counts, stream, strict=True)):
        # Function words are better than nothing.
        stream = stream.without_function_words()
        phrases = False
    content_counts = [
        (words[~is_function_word[words]], count[~is_function_word[words]])
        for (words, count), (_, is_function_word) in zip(counts, stream, strict=True)
    ]
    average = sum(float(count.sum()) for _, count in content_counts) / max(1, n_clusters)
    weights = np.log1p(average / np.maximum(overall, 1)) * np.where(stream.light, 0.5, 1)
    found = find_phrases(stream, counts) if phrases else None
    return [
        _best_keywords(stream.words, counted, weights, None if found is None else found[k], average, n_keywords)
        for k, counted in enumerate(content_counts)
    ]


def rows_by_cluster(labels: NDArray[np.int64], n_clusters: int) -> list[NDArray[np.int64]]:
    """Return the rows of each cluster in ascending order, with one sort for all clusters."""
    rows = np.flatnonzero(labels >= 0)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    begins = np.searchsorted(labels[rows], np.arange(n_clusters + 1))
    return [rows[begin:end] for begin, end in pairwise(begins)]


def _best_keywords(
    vocabulary: Sequence[str],
    counted: Counts,
    weights: NDArray[np.float64],
    phrases: Phrases | None,
    average: float,
    n_keywords: int,
) -> tuple[str, ...]:
    """Return the best keywords of a cluster.

    ``counted`` are its content words and their counts, ``weights`` the TF-IDF weights of all words.
    """
    words, counts = counted
    size = max(1.0, float(counts.sum()))
    left = counts if phrases is None else phrases.uncovered(words, counts)
    # Half a count is subtracted: a word that occurs once may be chance.
    scores = (left - 0.5) / size * weights[words]
    parts = words[:, None]
    if phrases is not None:
        phrase_scores = phrases.weight * (phrases.count - 0.5) / size * np.log1p(average / phrases.overall)
        scores = np.concatenate((scores, phrase_scores))
        parts = np.concatenate((np.pad(parts, ((0, 0), (0, 2)), constant_values=-1), phrases.parts))
    n_candidates = CANDIDATES_PER_KEYWORD * n_keywords
    lowest = max(0.0, np.partition(scores, -n_candidates)[-n_candidates] if len(scores) > n_candidates else 0.0)
    candidates = []
    for i in np.flatnonzero(scores >= lowest).tolist():
        candidates.append((-float(scores[i]), tuple(vocabulary[part] for part in parts[i].tolist() if part >= 0)))
    return _drop_repeats(sorted(candidates), frozenset(vocabulary[word] for word in words.tolist()), n_keywords)


def _drop_repeats(
    candidates: Iterable[tuple[float, tuple[str, ...]]], content_words: frozenset[str], n_keywords: int
) -> tuple[str, ...]:
    """Return the first keywords that do not repeat a better one.

    Dropped are other forms of a word, and phrases that share two words with a better phrase; the one word that such
    a phrase adds is listed in its place.
    """
    chosen: list[tuple[str, ...]] = []
    for _, keyword in candidates:
        if len(chosen) == n_keywords:
            break
        for other in chosen if len(keyword) > 1 else ():
            added = tuple(word for word in keyword if word in content_words and not _is_in(word, other))
            if len(other) > 1 and len(added) < 2 <= len(content_words.intersection(keyword)) - len(added):
                keyword = added
                break
        is_form = len(keyword) == 1 and any(_is_in(keyword[0], other) for other in chosen if keyword[0] not in other)
        if keyword and not is_form and keyword not in chosen:
            chosen.append(keyword)
    return tuple(" ".join(keyword) for keyword in chosen)


def _is_in(word: str, keyword: tuple[str, ...]) -> bool:
    return any(word == other or same_word(word, other) for other in keyword)


def same_word(first: str, second: str) -> bool:
    """Return whether two words look like forms of one: "order" and "ordered", "fee" and "fees".

    Both consist of letters only and differ in a short ending, as "currency" and "currencies" do.
    """
    if first[:3] != second[:3] or not (first.isalpha() and second.isalpha()):
        return False
    shorter, longer = sorted((first, second), key=len)
    if longer in (f"{shorter}s", f"{shorter}es"):
        return True
    common = next((i for i, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return common >= 5 and 3 * common >= 2 * len(longer)
