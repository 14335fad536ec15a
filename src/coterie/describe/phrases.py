"""Phrases of clusters: words that stand together more often than chance would have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.describe.word_stream import Ids, WordStream

# A phrase is seen so often, in this share of the occurrences of its rarest word, ...
LEAST_COUNT = 3
LEAST_SHARE = 0.3
# ... and so much more than by chance: twice the log-likelihood ratio, exceeded by chance once in some thousand times.
LEAST_RATIO = 10.0
# Three words are a phrase where they make up this share of one of the two phrases of two within them.
MOST = 0.5
# A word, or a phrase of two, is hidden by a phrase that holds this share of its occurrences.
NEARLY_ALL = 0.7

Counts = tuple[NDArray[np.int32], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Phrases:
    """The phrases of one cluster.

    Attributes
    ----------
    parts: the ids of the words of each; those of two words are filled up with -1 in the end.
    count: how often each occurs in the cluster, outside longer phrases.
    weight: how many of its words are no function words.
    overall: how often each occurs in all clusters.
    """

    parts: Ids
    count: NDArray[np.float64]
    weight: NDArray[np.int64]
    overall: NDArray[np.float64]

    def uncovered(self, words: Ids, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """How often each word counts beside the phrases: what they cover is taken off, but no more than half.

        A word that a single phrase nearly replaces counts nothing.
        """
        left = counts.astype(np.float64)
        if not len(self.parts):
            return left
        phrase, _ = np.nonzero(self.parts >= 0)
        at = np.searchsorted(words, self.parts[self.parts >= 0])
        # A function word in the middle is not among the words.
        known = at < len(words)
        known[known] = words[at[known]] == self.parts[self.parts >= 0][known]
        at, by = at[known], self.count[phrase[known]]
        covered = np.bincount(at, weights=by, minlength=len(words))
        most = np.zeros(len(words))
        np.maximum.at(most, at, by)
        left = np.maximum(left - covered, left / 2)
        left[most >= NEARLY_ALL * counts] = 0
        return left


def find_phrases(stream: WordStream, counts: Sequence[Counts]) -> list[Phrases]:
    """The phrases of each cluster; ``counts`` are its distinct words, rising, and how often each occurs."""
    found = [
        _in_cluster(ids, is_function_word | stream.light, *counted)
        for (ids, is_function_word), counted in zip(stream, counts, strict=True)
    ]
    parts = [part for part, _, _ in found]
    overall = _overall(stream, np.concatenate(parts)) if parts else np.empty(0)
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return [
        Phrases(part, count, weight, everywhere)
        for (part, count, weight), everywhere in zip(found, np.split(overall, cuts), strict=True)
    ]


def _in_cluster(
    ids: Ids, says_little: NDArray[np.bool_], words: Ids, counts: NDArray[np.int64]
) -> tuple[Ids, NDArray[np.float64], NDArray[np.int64]]:
    """Parts, counts and weights of a cluster's phrases."""
    frequent = counts >= LEAST_COUNT
    words, each = words[frequent], counts[frequent].astype(np.float64)
    total = float(counts.sum())
    place = _places(words, len(says_little))[ids]
    content = np.append(~says_little[words], False)[place]
    # "Ha ha" is no phrase.
    differ = place[:-1] != place[1:]
    two = _count_rows(place, content[:-1] & content[1:] & differ, len(words), 2)
    apart = differ[:-1] & differ[1:] & (place[:-2] != place[2:])
    three = _count_rows(place, content[:-2] & (place[1:-1] >= 0) & content[2:] & apart, len(words), 3)
    first, last = two.parts.T
    rare, common = np.minimum(each[first], each[last]), np.maximum(each[first], each[last])
    good = _holds(two.count, rare, common, each[first] * each[last] / total)
    pairs, of_pairs = two.parts[good], two.count[good]

    first, middle, last = three.parts.T
    empty_middle = says_little[words[middle]]
    left, right = two.look_up(three.parts[:, :2]), two.look_up(three.parts[:, 1:])
    # A function word in the middle says nothing about which words belong together.
    inner = np.where(empty_middle, each[first], each[middle])
    rare = np.minimum(np.minimum(each[first], each[last]), inner)
    common = np.maximum(np.maximum(each[first], each[last]), inner)
    by_chance = np.maximum(np.where(empty_middle, each[first], left) * each[last], right * each[first]) / total
    good = _holds(three.count, rare, common, by_chance)
    good &= empty_middle | (three.count >= MOST * np.minimum(left, right))
    triples, of_triples, weight = three.parts[good], three.count[good], 3 - empty_middle[good]

    covered = np.zeros(len(two.count))
    for inner in (triples[:, :2], triples[:, 1:]):
        at, is_known = two.find(inner)
        np.add.at(covered, at[is_known], of_triples[is_known])
    left_over = np.maximum(of_pairs - covered[two.find(pairs)[0]], 0)
    kept = left_over > (1 - NEARLY_ALL) * of_pairs
    parts = np.full((int(kept.sum()) + len(triples), 3), -1, np.int32)
    parts[: kept.sum(), :2] = words[pairs[kept]]
    parts[kept.sum() :] = words[triples]
    weights = np.concatenate((np.full(int(kept.sum()), 2), weight))
    return parts, np.concatenate((left_over[kept], of_triples)), weights


def _holds(
    count: NDArray[np.float64], rare: NDArray[np.float64], common: NDArray[np.float64], by_chance: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which phrases are seen often, in much of their rarest word, and more than by chance.

    ``rare`` and ``common`` count the rarest and the commonest of their words, ``by_chance`` how often they would
    stand together otherwise: each occurrence of the rarest word is a draw.
    """
    with_others = np.clip(by_chance / rare, 1e-12, 1 - 1e-12)
    without = np.maximum(rare - count, 0)
    ratio = 2 * (
        count * np.log(count / (rare * with_others))
        + without * np.log(np.maximum(without, 1e-12) / (rare * (1 - with_others)))
    )
    beyond_chance = (count > by_chance) & (ratio >= LEAST_RATIO)
    # Hardly ever apart: with few texts on one thing, chance would have them together often.
    inseparable = count >= NEARLY_ALL * common
    return np.asarray((count >= LEAST_COUNT) & (count >= LEAST_SHARE * rare) & (beyond_chance | inseparable))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Distinct runs of words, in the order of their keys, and how often each occurs."""

    keys: NDArray[np.int64]
    parts: NDArray[np.int64]
    count: NDArray[np.float64]
    base: int

    def find(self, parts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where ``parts`` are among these, and which of them are here at all."""
        keys = _keys(parts, self.base)
        at = np.minimum(np.searchsorted(self.keys, keys), max(0, len(self.keys) - 1))
        return at, (self.keys[at] == keys) if len(self.keys) else np.zeros(len(keys), np.bool_)

    def look_up(self, parts: NDArray[np.int64]) -> NDArray[np.float64]:
        """How often ``parts`` occur."""
        at, is_known = self.find(parts)
        found = np.zeros(len(parts))
        found[is_known] = self.count[at[is_known]]
        return found


def _count_rows(place: NDArray[np.int64], begins: NDArray[np.bool_], base: int, length: int) -> _Rows:
    """Distinct runs of ``length`` words that begin at the places marked."""
    at = np.flatnonzero(begins)
    keys, first, count = np.unique(
        _keys(place[at[:, None] + np.arange(length)], base), return_index=True, return_counts=True
    )
    return _Rows(keys, place[at[first][:, None] + np.arange(length)], count.astype(np.float64), base)


def _keys(parts: NDArray[np.int64], base: int) -> NDArray[np.int64]:
    """One number for each run of words; with more than two million words two runs of three could share one."""
    keys = parts[:, 0].astype(np.int64)
    for column in range(1, parts.shape[1]):
        keys = keys * base + parts[:, column]
    return keys


def _places(words: NDArray[np.integer], n_words: int) -> NDArray[np.int64]:
    """Where each of all words stands among ``words``, -1 for the others and for what is no word."""
    places = np.full(n_words + 2, -1)
    places[words] = np.arange(len(words))
    return places


def _overall(stream: WordStream, parts: Ids) -> NDArray[np.float64]:
    """How often each phrase occurs in all clusters together."""
    words = np.unique(parts[parts >= 0])
    place = _places(words, len(stream.words))[stream.ids]
    known = place >= 0
    found = np.zeros(len(parts))
    for length in (2, 3):
        rows = np.flatnonzero((parts >= 0).sum(axis=1) == length)
        wanted = np.searchsorted(words, parts[rows, :length])
        together = known[: len(known) - length + 1].copy()
        for ahead in range(1, length):
            together &= known[ahead : len(known) - length + 1 + ahead]
        found[rows] = _count_rows(place, together, len(words), length).look_up(wanted)
    return found
