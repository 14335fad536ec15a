"""Self-Train: DEC on smooth-inverse-frequency vectors, for short texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coterie.methods.baselines.deep import SelfTrainingMethod


@dataclass(kw_only=True, eq=False, repr=False)
class SelfTrain(SelfTrainingMethod):
    """A Self-Training Approach for Short Text Clustering (Hadifar et al., RepL4NLP 2019).

    Texts are SIF vectors (see :class:`~coterie.methods.baselines.sif.SIF`); an auto-encoder with a latent vector of 20
    is pretrained on them, and its encoder is trained further as in :class:`~coterie.methods.baselines.dec.DEC`, with a
    larger learning rate and k-means of a hundred starts.

    Parameters
    ----------
    n_clusters:
        How many clusters to make.
    features:
        ``"embedding"`` (the frozen encoder's), ``"tfidf"`` or ``"sif"``; ``fit(texts, embeddings=...)`` uses others.
    max_features:
        For TF-IDF: how many of the most frequent words to count.
    vectors:
        For SIF: a text file of word vectors; ``None`` uses the encoder's own table of word pieces.
    layers:
        Widths of the network behind the vectors; the last is that of the latent vector.
    pretrain_steps:
        Steps of pretraining the whole auto-encoder; before that, each layer alone is trained for half as many.
    max_steps:
        Steps of the second phase, at most.
    batch_size:
        Texts per step.
    learning_rate:
        Learning rate of SGD with momentum 0.9.
    update_interval:
        Steps between two checks of the whole corpus, at which the targets are recomputed.
    tolerance:
        Training ends when a smaller share of the labels than this changed between two checks.
    encoder, pooling, normalize, max_length, device:
        The pretrained encoder: see :class:`~coterie.methods.encoder_method.EncoderMethod`.
    random_state:
        Seed of everything.

    Attributes
    ----------
    labels_, confidence_, center_distance_, cluster_centers_, history_, notes_, timings_:
        See :class:`~coterie.methods.base.ClusteringMethod`; the centres are the trained ones.
    initial_labels_, kmeans_labels_, head_labels_:
        k-means on the pretrained network, k-means on the trained one, and ``labels_`` again.

    Differs from the paper
    ----------------------
    - Each layer alone and then the whole auto-encoder are trained by Adam at 1e-3; the public code trains the whole for
      12 to 15 epochs.
    - Vectors of any source are scaled to the length sqrt(d), as Xie et al. scale REUTERS.
    - Duplicate texts are used once, weighted by their count in every mean, in the targets and in k-means.
    - ``max_steps`` and the batch are the public code's for StackOverflow. Its ``update_interval`` is another for every
      data set (100 to 500 steps), here it is DEC's; its tolerance is a tenth of DEC's, here it is DEC's.
    - Rectified units, not leaky ones; all texts, not nine tenths of them.
    - Word vectors: the default is the encoder's own table, not word2vec trained on a large corpus of the domain.

    Examples
    --------
    >>> from coterie import SelfTrain
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "parcel lost"]
    >>> texts += ["forgot my password", "password reset", "reset the password"]
    >>> model = SelfTrain(n_clusters=2, layers="16-4", pretrain_steps=40).fit(texts)
    >>> model.transform(texts).shape
    (7, 4)
    """

    _n_init: ClassVar[int] = 100

    features: str = "sif"
    layers: str = "500-500-2000-20"
    pretrain_steps: int = 800
    max_steps: int = 1500
    batch_size: int = 64
    learning_rate: float = 0.1
