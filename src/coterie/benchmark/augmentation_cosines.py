"""How similar augmented texts are to their originals before any training: SCCL's Figure 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coterie.benchmark.traces import SAMPLE_SEED, sampled_rows

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod
    from coterie.text.corpus import Corpus

# Bins of the cosine, from -1 to 1: the resolution of the figure.
BINS = 40


def augmented_cosines(model: ClusteringMethod, corpus: Corpus) -> list[int]:
    """Count texts of a sample by the cosine to their first augmented view, with the pretrained encoder unchanged.

    Return an empty list for methods without augmented views, and where a language model makes them, which takes too
    long.
    """
    import numpy as np

    from coterie.clustering.kmeans import unit_rows
    from coterie.methods.contrastive import ContrastiveMethod

    augmenters = list(model._augmenters().values()) if isinstance(model, ContrastiveMethod) else []
    if not isinstance(model, ContrastiveMethod) or not augmenters or augmenters[0].slow:
        return []
    texts = [corpus.distinct[row] for row in sampled_rows(len(corpus.distinct))]
    views = augmenters[0].augment(texts, np.random.default_rng(SAMPLE_SEED))
    vectors = unit_rows(model.load_encoder().encode([*texts, *views]))
    # Equal vectors have a cosine of 1, which rounding may lift above it.
    cosines = (vectors[: len(texts)] * vectors[len(texts) :]).sum(axis=1).clip(-1, 1)
    counts: list[int] = np.histogram(cosines, BINS, (-1, 1))[0].tolist()
    return counts
