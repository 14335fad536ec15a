"""TF-IDF: word counts weighted by rarity, then a clustering."""

from __future__ import annotations

from typing import ClassVar

from coterie.methods.baselines.words import WordMethod


class TfIdf(WordMethod):
    """TF-IDF vectors of unit length, then k-means, spherical k-means, Ward or average linkage, or UMAP and k-means.

    SCCL's TF-IDF baseline has 1500 features; ClusterBERT's has 2000 without stop words.

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
    >>> from coterie import TfIdf
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "forgot my password", "password reset"]
    >>> TfIdf(n_clusters=2).fit(texts).labels_
    array([0, 0, 0, 1, 1])
    """

    weighting: ClassVar[str] = "tfidf"
