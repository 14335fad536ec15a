"""Bag of words: counts of the most frequent words, then a clustering."""

from __future__ import annotations

from typing import ClassVar

from coterie.methods.baselines.words import WordMethod


class BagOfWords(WordMethod):
    """Word counts, then k-means, spherical k-means, Ward or average linkage, or UMAP and k-means.

    The weakest baseline of the SCCL paper (section 4.1, 1500 features): the information in word counts alone.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    clusterer:
        ``"kmeans"``, ``"spherical"``, ``"ward"``, ``"average"`` or ``"umap"`` (k-means in five dimensions made by UMAP:
        ``pip install 'coterie[umap]'``). After the last three, ``predict`` assigns to the nearest mean.
    max_features:
        How many of the most frequent words to count.
    stop_words:
        ``"english"`` excludes English function words.
    random_state:
        Seed; the same seed gives the same clusters.

    Examples
    --------
    >>> from coterie import BagOfWords
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> BagOfWords(n_clusters=2).fit(texts).labels_
    array([0, 0, 0, 1, 1])
    """

    weighting: ClassVar[str] = "count"
