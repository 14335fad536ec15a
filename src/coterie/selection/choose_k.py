"""The number of clusters that the signs speak for, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.weights import DEFAULT_MODEL
from coterie.errors import InputError
from coterie.selection.k_grid import FEWEST_TEXTS, around, grid, range_of
from coterie.text.corpus import Corpus, as_corpus

# Distinct texts looked at; of more, as many are drawn.
LOOKED_AT = 4_000
# The rule: the sum of the signs, so weighted. The gap is shown but not counted, since it rises with k on nearly every
# set of texts. Decided on the sets for tuning and on parts of them (benchmarks/choose_k.py), never on a reported set:
# the best of some 2,400 weightings and numbers of neighbours tried there.
WEIGHTS: Mapping[str, float] = {"neighbours": 1.0, "silhouette": 1.0, "stability": 0.5, "words": 0.5}
# Sums that differ by less are as good as equal.
NEARLY = 0.01
# Clusters of one cloud of points have a gap of about 0.
NO_GAP = 0.02


@dataclass(frozen=True)
class Candidate:
    """One number of clusters and its signs (:mod:`coterie.selection.k_criteria`); more is better.

    Attributes
    ----------
    k:
        How many clusters.
    stability:
        Agreement (adjusted Rand) of the clusters of two draws of the texts, on the texts in both.
    silhouette:
        By cosine distance.
    gap:
        How much tighter the clusters are than those of one cloud as wide, in logarithms.
    neighbours, words:
        The share of nearest neighbours, by the encoder and by TF-IDF, that are in one cluster, less what chance gives;
        NaN where there is no such neighbour.
    score:
        The weighted sum that decides.
    """

    k: int
    stability: float
    silhouette: float
    gap: float
    neighbours: float
    words: float
    score: float


@dataclass(frozen=True)
class ChosenK:
    """What :func:`choose_k` found.

    Attributes
    ----------
    k:
        The number chosen.
    candidates:
        All that were tried, rising.
    lowest, highest:
        The range they were taken from.
    looked_at, n_texts:
        Texts that were looked at, of so many distinct ones.
    why:
        Sentences for people.
    """

    k: int
    candidates: tuple[Candidate, ...]
    lowest: int
    highest: int
    looked_at: int
    n_texts: int
    why: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON: a sign that could not be computed is ``None``."""
        content = asdict(self)
        content["candidates"] = [
            {name: None if math.isnan(value) else value for name, value in asdict(each).items()}
            for each in self.candidates
        ]
        return {**content, "why": list(self.why), "weights": dict(WEIGHTS)}


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
    """A number of clusters for ``texts``, told without labels, from what the encoder says of them before training.

    Up to 4,000 distinct texts are looked at. Every candidate is a cut of one Ward tree, and the one with the largest
    sum of signs is taken: neighbours that stay together (by vectors, and half as much by words), silhouette, and half
    the stability under resampling. First a geometric grid over the range is tried, then the numbers around its best.

    Take it as a first guess. On the eight short-text sets of the benchmark it was off by a factor of 1.7 on average and
    of 2.1 at worst: too many clusters for 4 to 8 broad classes, too few for 89 to 152 narrow ones. On the tuning sets,
    which its weights were picked on, by 1.3, but three classes of one set came out as 24: classes that people drew need
    not be groups in the vectors. docs/BENCHMARKS.md has every set.

    Parameters
    ----------
    texts:
        As ``fit`` takes them. May be left out where ``vectors`` are given: the sign of the words is then, too.
    vectors:
        In place of the encoder's: one row a text.
    k_range:
        The lowest and the highest number to try. By default from 2 to three times the square root of the number of
        distinct texts, at most 200.
    encoder, pooling, normalize, max_length, device:
        Which encoder and how: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    seed:
        For the draws; the same seed gives the same number.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.selection import choose_k
    >>> corners = np.repeat(np.eye(4), 30, axis=0)
    >>> choose_k(vectors=corners + np.random.default_rng(0).normal(scale=0.05, size=corners.shape)).k
    4
    """
    from coterie.selection.k_criteria import Evidence
    from coterie.text.sampling import draw_sample

    if texts is None:
        found, n_texts = _drawn_vectors(vectors, seed)
        looked_at, shown = len(found), None
        low, high = range_of(k_range, n_texts, looked_at)
    else:
        corpus = as_corpus(texts)
        sample = draw_sample(corpus, LOOKED_AT, seed)
        shown = sample.corpus.distinct
        n_texts, looked_at = len(corpus.distinct), len(shown)
        # Before the encoder is loaded: what cannot work should not cost seconds.
        low, high = range_of(k_range, n_texts, looked_at)
        if vectors is None:
            found = _encoded(sample.corpus, encoder, pooling, normalize, max_length, device)
        else:
            from coterie.encoders.precomputed_embeddings import vectors_by_text

            found = vectors_by_text(vectors, corpus)[sample.drawn]
        if len(np.unique(found, axis=0)) < FEWEST_TEXTS:
            raise InputError("nearly all texts have the same vector: how many clusters they are cannot be told")
    evidence = Evidence(found, shown, seed)
    tried = {k: _candidate(k, evidence.of(k)) for k in grid(low, high)}
    for k in around(_best(tried).k, sorted(tried)):
        tried[k] = _candidate(k, evidence.of(k))
    candidates = tuple(tried[k] for k in sorted(tried))
    best = _best(tried)
    return ChosenK(best.k, candidates, low, high, looked_at, n_texts, tuple(_reasons(best, candidates)))


def _candidate(k: int, signs: Mapping[str, float]) -> Candidate:
    score = sum(weight * signs[name] for name, weight in WEIGHTS.items() if not math.isnan(signs[name]))
    return Candidate(k, **signs, score=score)


def _best(tried: Mapping[int, Candidate]) -> Candidate:
    """Of equals the fewest clusters."""
    return max(tried.values(), key=lambda each: (each.score, -each.k))


def _reasons(best: Candidate, candidates: tuple[Candidate, ...]) -> list[str]:
    low, high = candidates[0].k, candidates[-1].k
    said = [
        f"{best.k} clusters: the best sum of signs ({best.score:.2f}) of {len(candidates)} numbers from {low} to {high}"
    ]
    told = []
    for name in ("neighbours", "words", "silhouette", "stability"):
        value = getattr(best, name)
        if not math.isnan(value):
            top = max(candidates, key=lambda each: getattr(each, name))
            highest = getattr(top, name)
            told.append(f"{name} {value:.2f} ({_where(highest, top.k) if highest - value > 0.005 else 'its best'})")
    said.append(f"signs at {best.k}: {', '.join(told)}")
    near = [each.k for each in candidates if best.score - each.score < NEARLY]
    if len(near) > 1:
        said.append(f"nearly as good: {', '.join(str(k) for k in near if k != best.k)}")
    if best.k in (low, high):
        said.append(f"{best.k} is the end of the range that was tried; another --k-range may find better")
    if best.gap < NO_GAP:
        said.append("the clusters are hardly tighter than parts of one cloud: these texts may have no clear groups")
    return said


def _where(value: float, k: int) -> str:
    return f"best {value:.2f} at {k}"


def _encoded(
    corpus: Corpus, encoder: str, pooling: str, normalize: bool | str, max_length: int, device: str
) -> NDArray[np.float32]:
    from coterie.encoders.device import resolve_device
    from coterie.encoders.transformer import TransformerEncoder

    loaded = TransformerEncoder.load(
        encoder, pooling=pooling, normalize=normalize, max_length=max_length, device=resolve_device(device)
    )
    return loaded.encode(corpus.distinct)


def _drawn_vectors(vectors: Any, seed: int) -> tuple[NDArray[np.float32], int]:
    """Distinct vectors, as many as are looked at, and how many there are in all."""
    if vectors is None:
        raise InputError("give texts, or vectors, or both")
    try:
        rows = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError("vectors= must be a table of numbers, all rows of one length") from error
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"vectors= must be a table of finite numbers, one row a text; its shape is {rows.shape}")
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    n_texts = len(first)
    if n_texts > LOOKED_AT:
        first = np.sort(np.random.default_rng(seed).choice(first, LOOKED_AT, replace=False))
    return rows[first], n_texts
