"""Choose the number of clusters by label-free criteria, with the reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.weights import DEFAULT_MODEL
from coterie.errors import InputError
from coterie.selection.k_grid import FEWEST_TEXTS, geometric_grid, refine_grid, resolve_range
from coterie.text.corpus import Corpus, as_corpus

# Most distinct texts that are compared, because Ward trees of them take seconds. A larger set is sampled.
SAMPLE_SIZE = 4_000
# Weights of the criteria in the score; the others are reported only.
WEIGHTS: Mapping[str, float] = {"information": 1.0, "neighbours": 1.0}
# Nats per logarithm of the number of clusters: what more clusters must tell about neighbours to be worth it. The best
# of 50 values on 89 draws of the tuning sets and on 80 % of the texts of 38, where 0.24 to 0.29 do nearly as well. With
# any data set left out, 0.27 or 0.28 is best on the others. No reported set was used.
PENALTY = 0.27
# Difference of scores, in nats, below which two numbers of clusters count as equally good.
NEARLY_EQUAL = 0.01
# Gap (see :mod:`coterie.selection.k_criteria`) below which there may be no clusters: one cloud has a gap of about 0.
SMALLEST_GAP = 0.02
# Difference of a criterion from its best value that is worth mentioning.
NOTICEABLE = 0.005


@dataclass(frozen=True)
class KCandidate:
    """A number of clusters with its criteria (:mod:`coterie.selection.k_criteria`); larger is better.

    The names of the criteria are those of ``choice_of_k`` in run.json.

    Attributes
    ----------
    k:
        How many clusters.
    information:
        Nats that the clusters tell about each text's nearest neighbours
        (:func:`~coterie.metrics.internal.modularity.neighbour_information`).
    stability:
        Agreement (adjusted Rand index) of the clusters of two subsamples, on the texts in both.
    silhouette:
        Mean silhouette by cosine distance.
    gap:
        Gap statistic: how much tighter the clusters are than those of a cloud of the same width, in logarithms.
    neighbours, words:
        Semantic and lexical modularity: the share of nearest neighbours, by the encoder and by TF-IDF, in one cluster,
        beyond chance. ``words`` is NaN where there is no such neighbour.
    score:
        What decides: ``information + neighbours - 0.27 log(k)``.
    """

    k: int
    information: float
    stability: float
    silhouette: float
    gap: float
    neighbours: float
    words: float
    score: float


@dataclass(frozen=True)
class ChosenK:
    """The result of :func:`choose_k`.

    Attributes
    ----------
    k:
        The chosen number of clusters.
    candidates:
        All numbers that were compared, in ascending order.
    lowest, highest:
        The range of the numbers.
    looked_at, n_texts:
        How many texts were compared (a sample of many), and how many distinct texts there are.
    why:
        The reasons, as sentences for people.
    """

    k: int
    candidates: tuple[KCandidate, ...]
    lowest: int
    highest: int
    looked_at: int
    n_texts: int
    why: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data, for JSON; a criterion that could not be computed is ``None``."""
        content = asdict(self)
        content["candidates"] = [
            {name: None if math.isnan(value) else value for name, value in asdict(each).items()}
            for each in self.candidates
        ]
        return {**content, "why": list(self.why), "weights": dict(WEIGHTS), "penalty": PENALTY}


def choose_k(
    texts: Any = None,
    *,
    vectors: Any = None,
    k_range: tuple[int, int] | None = None,
    encoder: str = DEFAULT_MODEL,
    pooling: str = "auto",
    normalize: bool | str = "auto",
    max_length: int = 64,
    device: str = "auto",
    seed: int = 0,
) -> ChosenK:
    """Choose a number of clusters for ``texts`` without labels, from the vectors of the pretrained encoder.

    Up to 4,000 distinct texts are compared. Every number of clusters is a cut of one Ward tree, of the vectors averaged
    with those of their semantic and lexical neighbours. The number with the largest score is chosen: how much clusters
    tell about which texts are neighbours (:func:`~coterie.metrics.internal.modularity.neighbour_information`), plus
    semantic modularity, less a penalty of 0.27 times the logarithm of the number. The first pass compares a geometric
    grid over the range, the second one the numbers around the best of the first.

    Use the result as a first guess. On 38 tuning sets of 3 to 147 classes it is off by a factor of 1.6 on average, and
    within 1.3 on 26 of them. It is near where classes are distinct and have some dozens of texts, such as 6 to 77
    intents. It is too low where classes have two dozen texts or fewer, or very different sizes, and too high for a few
    broad classes: the classes that people define need not be clusters of the vectors. docs/BENCHMARKS.md has every set.

    Parameters
    ----------
    texts:
        The texts, in any form that ``fit`` accepts. May be left out where ``vectors`` are given; there is then no
        lexical criterion.
    vectors:
        Vectors in place of the encoder's, one row per text.
    k_range:
        The lowest and the highest number to compare. By default from 2 to three times the square root of the number of
        distinct texts, at most 200.
    encoder, pooling, normalize, max_length, device:
        Which encoder and how: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    seed:
        Seed of the sample, of the subsamples that stability is measured on and of the clouds of the gap. Up to 4,000
        distinct texts give the same number for every seed.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.selection import choose_k
    >>> corners = np.repeat(np.eye(4), 30, axis=0)
    >>> choose_k(vectors=corners + np.random.default_rng(0).normal(scale=0.05, size=corners.shape)).k
    4
    """
    from coterie.selection.k_criteria import TreeCriteria
    from coterie.text.sampling import draw_sample

    if texts is None:
        found, n_texts = _sample_vectors(vectors, seed)
        looked_at, shown = len(found), None
        low, high = resolve_range(k_range, n_texts, looked_at)
    else:
        corpus = as_corpus(texts)
        sample = draw_sample(corpus, SAMPLE_SIZE, seed)
        shown = sample.corpus.distinct
        n_texts, looked_at = len(corpus.distinct), len(shown)
        # Checked before the encoder is loaded, so that an impossible range fails at once.
        low, high = resolve_range(k_range, n_texts, looked_at)
        if vectors is None:
            found = _encode(sample.corpus, encoder, pooling, normalize, max_length, device)
        else:
            from coterie.encoders.precomputed_embeddings import embeddings_by_text

            found = embeddings_by_text(vectors, corpus)[sample.drawn]
        if len(np.unique(found, axis=0)) < FEWEST_TEXTS:
            raise InputError("nearly all texts have the same vector, so no number of clusters can be chosen: give -k")
    criteria = TreeCriteria(found, shown, seed)
    candidates_by_k = {k: _candidate(k, criteria.compute(k)) for k in geometric_grid(low, high)}
    for k in refine_grid(_best(candidates_by_k).k, sorted(candidates_by_k)):
        candidates_by_k[k] = _candidate(k, criteria.compute(k))
    candidates = tuple(candidates_by_k[k] for k in sorted(candidates_by_k))
    best = _best(candidates_by_k)
    return ChosenK(best.k, candidates, low, high, looked_at, n_texts, tuple(_reasons(best, candidates)))


def _candidate(k: int, criteria: Mapping[str, float]) -> KCandidate:
    score = sum(weight * criteria[name] for name, weight in WEIGHTS.items()) - PENALTY * math.log(k)
    return KCandidate(k, **criteria, score=score)


def _best(candidates_by_k: Mapping[int, KCandidate]) -> KCandidate:
    """Return the candidate with the largest score, of equals the one with the fewest clusters."""
    return max(candidates_by_k.values(), key=lambda each: (each.score, -each.k))


def _reasons(best: KCandidate, candidates: tuple[KCandidate, ...]) -> list[str]:
    low, high = candidates[0].k, candidates[-1].k
    reasons = [
        f"{best.k} clusters: the largest score ({best.score:.2f}) of {len(candidates)} numbers from {low} to {high}"
    ]
    values = []
    for name in ("information", "neighbours", "words", "silhouette", "stability"):
        value = getattr(best, name)
        if not math.isnan(value):
            top = max(candidates, key=lambda each: getattr(each, name))
            highest = getattr(top, name)
            at = f"best {highest:.2f} at {top.k}" if highest - value > NOTICEABLE else "its best"
            values.append(f"{name} {value:.2f} ({at})")
    reasons.append(f"criteria at {best.k}: {', '.join(values)}")
    near = [each.k for each in candidates if best.score - each.score < NEARLY_EQUAL]
    if len(near) > 1:
        reasons.append(f"nearly as good: {', '.join(str(k) for k in near if k != best.k)}")
    if best.k in (low, high):
        reasons.append(f"{best.k} is the end of the range that was compared; another --k-range may give a better one")
    if best.gap < SMALLEST_GAP:
        reasons.append("the clusters are hardly tighter than parts of one cloud: there may be no clear clusters")
    return reasons


def _encode(
    corpus: Corpus, encoder: str, pooling: str, normalize: bool | str, max_length: int, device: str
) -> NDArray[np.float32]:
    from coterie.encoders.pretrained import load_pretrained

    loaded = load_pretrained(encoder, pooling=pooling, normalize=normalize, max_length=max_length, device=device)
    return loaded.encode(corpus.distinct)


def _sample_vectors(vectors: Any, seed: int) -> tuple[NDArray[np.float32], int]:
    """Return the distinct vectors, at most ``SAMPLE_SIZE``, and how many there are."""
    if vectors is None:
        raise InputError("give texts, or vectors, or both")
    try:
        rows = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError("vectors= must be a table of numbers, all rows of one length") from error
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"vectors= must be a table of finite numbers, one row per text; its shape is {rows.shape}")
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    n_texts = len(first)
    if n_texts > SAMPLE_SIZE:
        first = np.sort(np.random.default_rng(seed).choice(first, SAMPLE_SIZE, replace=False))
    return rows[first], n_texts
