"""Names of clusters, made of their keywords."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from coterie.types import ClusterSummary

# Keywords in a name; more are added only to distinguish clusters.
N_KEYWORDS = 2
# Characters of a name, so that it fits into a line of the report and of the terminal.
MAX_LENGTH = 40


def name_clusters(summaries: Sequence[ClusterSummary]) -> list[str]:
    """Return a unique name per cluster from its keywords; the language comes first where it is not that of most."""
    names = names_from_keywords([each.keywords for each in summaries], [each.id for each in summaries])
    return [
        name if each.language is None else f"{each.language.title()}: {name}"
        for name, each in zip(names, summaries, strict=True)
    ]


def names_from_keywords(keywords: Sequence[Sequence[str]], ids: Sequence[int] | None = None) -> list[str]:
    """Return a unique name per cluster from its keywords (best first).

    A name is made of the two best keywords that do not repeat each other. Clusters whose names have the same words, in
    any order, get one more keyword each until they differ, and finally a number. Names have about 40 characters at
    most, where possible. A cluster without keywords is named after its id (its position without ``ids``).

    Examples
    --------
    >>> names_from_keywords([["password", "reset password", "login"], ["late", "parcel"], []])
    ['Reset password, login', 'Late, parcel', 'Cluster 2']
    """
    numbers = range(len(keywords)) if ids is None else ids
    ordered = [_without_repeats(words) for words in keywords]
    lengths = [_initial_length(words) for words in ordered]
    while True:
        equal = _equal_names(_words(words[:length]) for words, length in zip(ordered, lengths, strict=True))
        growing = [k for same in equal for k in same if lengths[k] < len(ordered[k])]
        if not growing:
            break
        for k in growing:
            lengths[k] += 1
    names = [
        _format_name(words[:length]) if words else f"Cluster {number}"
        for words, length, number in zip(ordered, lengths, numbers, strict=True)
    ]
    return _numbered(names)


def _without_repeats(keywords: Iterable[str]) -> list[str]:
    """Return the keywords without repeats, those with new words first; a phrase replaces the words it contains."""
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


def _initial_length(keywords: Sequence[str]) -> int:
    """Return how many of the first keywords fit into a name."""
    length = min(N_KEYWORDS, len(keywords))
    while length > 1 and len(", ".join(keywords[:length])) > MAX_LENGTH:
        length -= 1
    return length


def _equal_names(word_sets: Iterable[frozenset[str]]) -> list[list[int]]:
    """Return lists of clusters whose names have the same words; names without words are made unique by their ids."""
    clusters_by_words: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for k, words in enumerate(word_sets):
        if words:
            clusters_by_words[words].append(k)
    return [clusters for clusters in clusters_by_words.values() if len(clusters) > 1]


def _words(keywords: Iterable[str]) -> frozenset[str]:
    return frozenset(word for keyword in keywords for word in keyword.casefold().split())


def _format_name(keywords: Sequence[str]) -> str:
    """Join keywords, cut to length, with a capital first letter."""
    name = ", ".join(keywords)
    if len(keywords) == 1 and len(name) > MAX_LENGTH:
        name = f"{name[: MAX_LENGTH - 1].rstrip()}…"
    # "iPhone" keeps its small letter.
    first = name.split()[0]
    return name if first != first.lower() else name[0].title() + name[1:]


def _numbered(names: Sequence[str]) -> list[str]:
    """Append a number to names that an earlier cluster has."""
    word_sets = [_words([name.replace(",", "")]) for name in names]
    taken = {name.casefold() for name in names}
    counts: Counter[frozenset[str]] = Counter()
    unique = []
    for name, words in zip(names, word_sets, strict=True):
        counts[words] += 1
        if counts[words] > 1:
            while f"{name} ({counts[words]})".casefold() in taken:
                counts[words] += 1
            name = f"{name} ({counts[words]})"
            taken.add(name.casefold())
        unique.append(name)
    return unique
