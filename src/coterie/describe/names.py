"""Readable names of clusters, made of their keywords."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from coterie.types import ClusterSummary

# Keywords in a name to begin with, and how long it should be at most.
KEYWORDS_IN_A_NAME = 2
LONGEST_NAME = 40


def name_clusters(summaries: Sequence[ClusterSummary]) -> list[str]:
    """A name for each cluster from its keywords, no two alike; one that is a language apart says which."""
    names = names_from_keywords([each.keywords for each in summaries], [each.id for each in summaries])
    return [
        name if each.language is None else f"{each.language.title()}: {name}"
        for name, each in zip(names, summaries, strict=True)
    ]


def names_from_keywords(keywords: Sequence[Sequence[str]], ids: Sequence[int] | None = None) -> list[str]:
    """A name for each cluster from its keywords (best first), no two alike.

    The two best keywords that do not repeat each other make a name. Clusters whose names hold the same words, in
    whatever order, get one keyword more each until they differ, and a number at last. Names stay within some 40
    characters where they can. A cluster without keywords is named after its id (its place without ``ids``).

    Examples
    --------
    >>> names_from_keywords([["password", "reset password", "login"], ["late", "parcel"], []])
    ['Reset password, login', 'Late, parcel', 'Cluster 2']
    """
    numbers = range(len(keywords)) if ids is None else ids
    ordered = [_without_repeats(words) for words in keywords]
    lengths = [_fitting(words) for words in ordered]
    while True:
        alike = _alike(_words(words[:length]) for words, length in zip(ordered, lengths, strict=True))
        growing = [k for group in alike for k in group if lengths[k] < len(ordered[k])]
        if not growing:
            break
        for k in growing:
            lengths[k] += 1
    names = [
        _spelled(words[:length]) if words else f"Cluster {number}"
        for words, length, number in zip(ordered, lengths, numbers, strict=True)
    ]
    return _numbered(names)


def _without_repeats(keywords: Iterable[str]) -> list[str]:
    """The keywords in the order of use: a phrase takes its words' place, those with new words come first."""
    kept: list[tuple[str, frozenset[str]]] = []
    for keyword in filter(None, (" ".join(keyword.split()) for keyword in keywords)):
        words = _words([keyword])
        if any(words <= other for _, other in kept):
            continue
        repeated = [i for i, (_, other) in enumerate(kept) if other < words]
        kept = [known for i, known in enumerate(kept) if i not in repeated]
        kept.insert(repeated[0] if repeated else len(kept), (keyword, words))
    new: list[str] = []
    partly_new: list[str] = []
    used: frozenset[str] = frozenset()
    for keyword, words in kept:
        (partly_new if used & words else new).append(keyword)
        used |= words
    return new + partly_new


def _fitting(keywords: Sequence[str]) -> int:
    """How many of the first keywords fit into a name."""
    length = min(KEYWORDS_IN_A_NAME, len(keywords))
    while length > 1 and len(", ".join(keywords[:length])) > LONGEST_NAME:
        length -= 1
    return length


def _alike(meanings: Iterable[frozenset[str]]) -> list[list[int]]:
    """Clusters whose names hold the same words; those without words are told apart by their ids."""
    groups: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for k, words in enumerate(meanings):
        if words:
            groups[words].append(k)
    return [group for group in groups.values() if len(group) > 1]


def _words(keywords: Iterable[str]) -> frozenset[str]:
    return frozenset(word for keyword in keywords for word in keyword.casefold().split())


def _spelled(keywords: Sequence[str]) -> str:
    name = ", ".join(keywords)
    if len(keywords) == 1 and len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 1].rstrip()}…"
    # "iPhone" keeps its small letter.
    first = name.split()[0]
    return name if first != first.lower() else name[0].title() + name[1:]


def _numbered(names: Sequence[str]) -> list[str]:
    """The same names, with a number behind those that an earlier cluster has."""
    meanings = [_words([name.replace(",", "")]) for name in names]
    taken = {name.casefold() for name in names}
    seen: Counter[frozenset[str]] = Counter()
    told = []
    for name, meaning in zip(names, meanings, strict=True):
        seen[meaning] += 1
        if seen[meaning] > 1:
            while f"{name} ({seen[meaning]})".casefold() in taken:
                seen[meaning] += 1
            name = f"{name} ({seen[meaning]})"
            taken.add(name.casefold())
        told.append(name)
    return told
