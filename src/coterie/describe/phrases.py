"""Phrases of clusters: words that occur together more often than by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.describe.word_stream import Ids, WordStream

# Occurrences of a phrase in a cluster; fewer may be one person's wording.
MIN_COUNT = 3
# Share of the occurrences of its rarest word that are in the phrase; with less, the word is about other things too.
MIN_SHARE = 0.3
# Twice the log-likelihood ratio of a phrase; chance exceeds it about once in a thousand cases.
MIN_RATIO = 10.0
# Share of one of its phrases of two words that a phrase of three must make up, so that it is not their accidental sum.
MIN_SHARE_OF_PAIR = 0.5
# Share of the occurrences of a word, or of a phrase of two, from which a longer phrase replaces it.
REPLACED_SHARE = 0.7

Counts = tuple[NDArray[np.int32], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Phrases:
    """The phrases of one cluster.

    Attributes
    ----------
    parts:
        The word ids of each, shape (n_phrases, 3); a phrase of two words ends in -1.
    count:
        Occurrences in the cluster, outside longer phrases.
    weight:
        The number of content words, which are not function words.
    overall:
        Occurrences in all clusters.
    """

    parts: Ids
    count: NDArray[np.float64]
    weight: NDArray[np.int64]
    overall: NDArray[np.float64]

    def uncovered(self, words: Ids, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the count of each word without its occurrences in phrases, of which at most half are subtracted.

        A word that occurs almost only in one phrase counts 0.
        """
        left = counts.astype(np.float64)
        if not len(self.parts):
            return left
        phrase, _ = np.nonzero(self.parts >= 0)
        at = np.searchsorted(words, self.parts[self.parts >= 0])
        # A function word in the middle of a phrase is not among ``words``.
        known = at < len(words)
        known[known] = words[at[known]] == self.parts[self.parts >= 0][known]
        at, by = at[known], self.count[phrase[known]]
        covered = np.bincount(at, weights=by, minlength=len(words))
        most = np.zeros(len(words))
        np.maximum.at(most, at, by)
        left = np.maximum(left - covered, left / 2)
        left[most >= REPLACED_SHARE * counts] = 0
        return left


def find_phrases(stream: WordStream, counts: Sequence[Counts]) -> list[Phrases]:
    """Return the phrases of each cluster; ``counts`` are its distinct words in ascending order, and their counts."""
    found = [
        _cluster_phrases(ids, is_function_word | stream.light, *counted)
        for (ids, is_function_word), counted in zip(stream, counts, strict=True)
    ]
    parts = [part for part, _, _ in found]
    overall = _overall(stream, np.concatenate(parts)) if parts else np.empty(0)
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return [
        Phrases(part, count, weight, everywhere)
        for (part, count, weight), everywhere in zip(found, np.split(overall, cuts), strict=True)
    ]


def _cluster_phrases(
    ids: Ids, is_light: NDArray[np.bool_], words: Ids, counts: NDArray[np.int64]
) -> tuple[Ids, NDArray[np.float64], NDArray[np.int64]]:
    """Return parts, counts and weights of a cluster's phrases, as in :class:`Phrases`."""
    frequent = counts >= MIN_COUNT
    words, each = words[frequent], counts[frequent].astype(np.float64)
    total = float(counts.sum())
    position = _positions(words, len(is_light))[ids]
    content = np.append(~is_light[words], False)[position]
    # A repeated word, as in "ha ha", is not a phrase.
    differ = position[:-1] != position[1:]
    two = _count_sequences(position, content[:-1] & content[1:] & differ, len(words), 2)
    apart = differ[:-1] & differ[1:] & (position[:-2] != position[2:])
    three = _count_sequences(position, content[:-2] & (position[1:-1] >= 0) & content[2:] & apart, len(words), 3)
    first, last = two.parts.T
    rare, common = np.minimum(each[first], each[last]), np.maximum(each[first], each[last])
    good = _is_phrase(two.count, rare, common, each[first] * each[last] / total)
    pairs, of_pairs = two.parts[good], two.count[good]

    first, middle, last = three.parts.T
    empty_middle = is_light[words[middle]]
    left, right = two.look_up(three.parts[:, :2]), two.look_up(three.parts[:, 1:])
    # A function word in the middle does not show which words belong together.
    inner = np.where(empty_middle, each[first], each[middle])
    rare = np.minimum(np.minimum(each[first], each[last]), inner)
    common = np.maximum(np.maximum(each[first], each[last]), inner)
    by_chance = np.maximum(np.where(empty_middle, each[first], left) * each[last], right * each[first]) / total
    good = _is_phrase(three.count, rare, common, by_chance)
    good &= empty_middle | (three.count >= MIN_SHARE_OF_PAIR * np.minimum(left, right))
    triples, of_triples, weight = three.parts[good], three.count[good], 3 - empty_middle[good]

    covered = np.zeros(len(two.count))
    for inner in (triples[:, :2], triples[:, 1:]):
        at, is_known = two.find(inner)
        np.add.at(covered, at[is_known], of_triples[is_known])
    left_over = np.maximum(of_pairs - covered[two.find(pairs)[0]], 0)
    kept = left_over > (1 - REPLACED_SHARE) * of_pairs
    parts = np.full((int(kept.sum()) + len(triples), 3), -1, np.int32)
    parts[: kept.sum(), :2] = words[pairs[kept]]
    parts[kept.sum() :] = words[triples]
    weights = np.concatenate((np.full(int(kept.sum()), 2), weight))
    return parts, np.concatenate((left_over[kept], of_triples)), weights


def _is_phrase(
    count: NDArray[np.float64], rare: NDArray[np.float64], common: NDArray[np.float64], by_chance: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which phrases occur often, in a large share of their rarest word, and more than by chance.

    ``rare`` and ``common`` are the counts of the rarest and the most common of their words, ``by_chance`` is the
    expected count if the words were independent: a binomial over the occurrences of the rarest word.
    """
    with_others = np.clip(by_chance / rare, 1e-12, 1 - 1e-12)
    without = np.maximum(rare - count, 0)
    ratio = 2 * (
        count * np.log(count / (rare * with_others))
        + without * np.log(np.maximum(without, 1e-12) / (rare * (1 - with_others)))
    )
    beyond_chance = (count > by_chance) & (ratio >= MIN_RATIO)
    # Almost never apart: in a small cluster about one thing, chance alone would often join such words.
    inseparable = count >= REPLACED_SHARE * common
    return np.asarray((count >= MIN_COUNT) & (count >= MIN_SHARE * rare) & (beyond_chance | inseparable))


@dataclass(frozen=True, eq=False)
class _Sequences:
    """Distinct sequences of words, in the order of their keys, with their counts."""

    keys: NDArray[np.int64]
    parts: NDArray[np.int64]
    count: NDArray[np.float64]
    base: int

    def find(self, parts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the position of each of ``parts`` among these, and which of them are present."""
        keys = _keys(parts, self.base)
        at = np.minimum(np.searchsorted(self.keys, keys), max(0, len(self.keys) - 1))
        return at, (self.keys[at] == keys) if len(self.keys) else np.zeros(len(keys), np.bool_)

    def look_up(self, parts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the count of each of ``parts``; 0 where it is not present."""
        at, is_known = self.find(parts)
        found = np.zeros(len(parts))
        found[is_known] = self.count[at[is_known]]
        return found


def _count_sequences(position: NDArray[np.int64], begins: NDArray[np.bool_], base: int, length: int) -> _Sequences:
    """Return the distinct sequences of ``length`` words that begin where ``begins`` is true."""
    at = np.flatnonzero(begins)
    keys, first, count = np.unique(
        _keys(position[at[:, None] + np.arange(length)], base), return_index=True, return_counts=True
    )
    return _Sequences(keys, position[at[first][:, None] + np.arange(length)], count.astype(np.float64), base)


def _keys(parts: NDArray[np.int64], base: int) -> NDArray[np.int64]:
    """Return one number per sequence of words; unique for sequences of three among up to two million words."""
    keys = parts[:, 0].astype(np.int64)
    for column in range(1, parts.shape[1]):
        keys = keys * base + parts[:, column]
    return keys


def _positions(words: NDArray[np.integer], n_words: int) -> NDArray[np.int64]:
    """Return the position of each word id in ``words``; -1 for other words and for breaks between words."""
    positions = np.full(n_words + 2, -1)
    positions[words] = np.arange(len(words))
    return positions


def _overall(stream: WordStream, parts: Ids) -> NDArray[np.float64]:
    """Return how often each phrase occurs in all clusters together."""
    words = np.unique(parts[parts >= 0])
    position = _positions(words, len(stream.words))[stream.ids]
    known = position >= 0
    found = np.zeros(len(parts))
    for length in (2, 3):
        rows = np.flatnonzero((parts >= 0).sum(axis=1) == length)
        wanted = np.searchsorted(words, parts[rows, :length])
        together = known[: len(known) - length + 1].copy()
        for ahead in range(1, length):
            together &= known[ahead : len(known) - length + 1 + ahead]
        found[rows] = _count_sequences(position, together, len(words), length).look_up(wanted)
    return found
