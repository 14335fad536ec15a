"""The registry of methods: one row per method. Importing it imports neither torch nor scikit-learn."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from coterie.errors import SettingError

if TYPE_CHECKING:
    from coterie.methods.base import ClusteringMethod


@dataclass(frozen=True)
class MethodInfo:
    """The registry's row of a method: its public name, its documentation page and every list of methods use it.

    Attributes
    ----------
    name:
        Name on the command line.
    target:
        ``"module:Class"`` of the estimator.
    title:
        Name in texts.
    kind:
        ``"own"``, ``"paper"`` or ``"baseline"``.
    summary:
        What the method does, in half a line.
    citation:
        Authors, title and year; empty for Coterie's own.
    trains_encoder:
        Whether it fine-tunes the encoder.
    requires:
        The package it needs beyond Coterie's own, which is also the name of the extra that installs it.
    """

    name: str
    target: str
    title: str
    kind: str
    summary: str
    citation: str
    trains_encoder: bool
    requires: str = ""

    @property
    def module(self) -> str:
        """The module that defines the estimator class."""
        return self.target.split(":")[0]

    @property
    def class_name(self) -> str:
        """The name of the estimator class, under which ``coterie`` exports it."""
        return self.target.split(":")[1]

    @property
    def available(self) -> bool:
        """Whether the required package is installed; it is not imported."""
        return not self.requires or importlib.util.find_spec(self.requires) is not None

    def load(self) -> type[ClusteringMethod]:
        """Import and return the estimator class."""
        loaded: type[ClusteringMethod] = getattr(importlib.import_module(self.module), self.class_name)
        return loaded

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return asdict(self)


# The method that is used if none is named.
DEFAULT_METHOD = "auto"
METHODS: tuple[MethodInfo, ...] = (
    MethodInfo(
        name="auto",
        target="coterie.methods.auto.method:Coterie",
        title="Coterie",
        kind="own",
        summary="the consensus of many clusterings by meaning and by words, before and after fine-tuning",
        citation="",
        trains_encoder=True,
    ),
    MethodInfo(
        name="lexical",
        target="coterie.methods.lexical.method:LexicalClusters",
        title="Lexical clusters",
        kind="own",
        summary="a small network trained on weighted word counts, then k-means or a linkage; no pretrained encoder",
        citation="",
        trains_encoder=False,
    ),
    MethodInfo(
        name="sccl",
        target="coterie.methods.sccl:SCCL",
        title="SCCL",
        kind="paper",
        summary="contrastive learning and soft clustering, trained together",
        citation="Zhang et al., Supporting Clustering with Contrastive Learning, NAACL 2021",
        trains_encoder=True,
    ),
    MethodInfo(
        name="aecl",
        target="coterie.methods.aecl.method:AECL",
        title="AECL",
        kind="paper",
        summary="contrastive learning guided by attention between texts, a clustering head, pseudo-labels",
        citation="Yao and Li, Discriminative Representation learning via Attention-Enhanced Contrastive Learning for "
        "Short Text Clustering, 2025",
        trains_encoder=True,
    ),
    MethodInfo(
        name="deccrl",
        target="coterie.methods.deccrl.method:DECCRL",
        title="DECCRL",
        kind="paper",
        summary="contrastive learning, soft clustering, and topics computed from the cluster centres",
        citation="Yin et al., Improving Deep Embedded Clustering via Learning Cluster-level Representations, "
        "COLING 2022",
        trains_encoder=True,
    ),
    MethodInfo(
        name="clusterbert",
        target="coterie.methods.clusterbert:ClusterBERT",
        title="ClusterBERT",
        kind="paper",
        summary="a denoising auto-encoder, then clustering with re-clustering, then hardening",
        citation="ClusterBERT: Multi-stage Fine-tuning of Transformers for Deep Text Clustering, under review 2022",
        trains_encoder=True,
    ),
    MethodInfo(
        name="uftc",
        target="coterie.methods.uftc:UFTC",
        title="UFTC",
        kind="paper",
        summary="masked language modelling and soft clustering, trained together",
        citation="Huang et al., Unsupervised Fine-tuning for Text Clustering, COLING 2020",
        trains_encoder=True,
    ),
    MethodInfo(
        name="frozen",
        target="coterie.methods.baselines.frozen:FrozenEncoder",
        title="Frozen encoder",
        kind="baseline",
        summary="the pretrained encoder, then k-means, a linkage, UMAP and k-means, or the best by label-free criteria",
        citation="Reimers and Gurevych, Sentence-BERT, EMNLP 2019",
        trains_encoder=False,
    ),
    MethodInfo(
        name="tfidf",
        target="coterie.methods.baselines.tfidf:TfIdf",
        title="TF-IDF",
        kind="baseline",
        summary="weighted word counts, then k-means, a linkage, or UMAP and k-means",
        citation="Salton and Buckley, Term-weighting approaches in automatic text retrieval, 1988",
        trains_encoder=False,
    ),
    MethodInfo(
        name="bow",
        target="coterie.methods.baselines.bow:BagOfWords",
        title="Bag of words",
        kind="baseline",
        summary="word counts, then k-means, a linkage, or UMAP and k-means",
        citation="Harris, Distributional Structure, Word 1954",
        trains_encoder=False,
    ),
    MethodInfo(
        name="hac_sd",
        target="coterie.methods.baselines.hac_sd.method:HACSD",
        title="HAC-SD",
        kind="baseline",
        summary="a linkage of the most significant similarities, then iterative classification",
        citation="Rakib et al., Enhancement of Short Text Clustering by Iterative Classification, NLDB 2020",
        trains_encoder=False,
    ),
    MethodInfo(
        name="bertopic",
        target="coterie.methods.baselines.bertopic:BERTopicClusters",
        title="BERTopic",
        kind="baseline",
        summary="the package BERTopic on the same embeddings, with k-means",
        citation="Grootendorst, BERTopic: Neural topic modeling with a class-based TF-IDF procedure, 2022",
        trains_encoder=False,
        requires="bertopic",
    ),
    MethodInfo(
        name="rstc",
        target="coterie.methods.baselines.rstc:RSTC",
        title="RSTC",
        kind="baseline",
        summary="contrastive learning, and a clustering head with targets by optimal transport that finds the sizes",
        citation="Zheng et al., Robust Representation Learning with Reliable Pseudo-labels Generation via "
        "Self-Adaptive Optimal Transport for Short Text Clustering, ACL 2023",
        trains_encoder=True,
    ),
    MethodInfo(
        name="tsdae",
        target="coterie.methods.baselines.tsdae:TSDAE",
        title="TSDAE",
        kind="baseline",
        summary="a denoising auto-encoder adapts the encoder to the texts, then k-means",
        citation="Wang et al., TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder for Unsupervised "
        "Sentence Embedding Learning, EMNLP Findings 2021",
        trains_encoder=True,
    ),
    MethodInfo(
        name="stcc",
        target="coterie.methods.baselines.stcc.method:STCC",
        title="STCC",
        kind="baseline",
        summary="word vectors, a convolutional network that learns binary codes of the texts, then k-means",
        citation="Xu et al., Self-Taught Convolutional Neural Networks for Short Text Clustering, Neural Networks 2017",
        trains_encoder=False,
    ),
    MethodInfo(
        name="sif",
        target="coterie.methods.baselines.sif:SIF",
        title="SIF",
        kind="baseline",
        summary="weighted means of word vectors without their common component, then k-means or a linkage",
        citation="Arora et al., A Simple but Tough-to-Beat Baseline for Sentence Embeddings, ICLR 2017",
        trains_encoder=False,
    ),
    MethodInfo(
        name="ae",
        target="coterie.methods.baselines.autoencoder:AutoEncoder",
        title="Auto-encoder",
        kind="baseline",
        summary="a stacked auto-encoder over fixed vectors, then k-means",
        citation="Hinton and Salakhutdinov, Reducing the Dimensionality of Data with Neural Networks, Science 2006",
        trains_encoder=False,
    ),
    MethodInfo(
        name="dec",
        target="coterie.methods.baselines.dec:DEC",
        title="DEC",
        kind="baseline",
        summary="an auto-encoder over fixed vectors, then soft clustering with its own targets",
        citation="Xie et al., Unsupervised Deep Embedding for Clustering Analysis, ICML 2016",
        trains_encoder=False,
    ),
    MethodInfo(
        name="idec",
        target="coterie.methods.baselines.idec:IDEC",
        title="IDEC",
        kind="baseline",
        summary="an auto-encoder with reconstruction and soft clustering together",
        citation="Guo et al., Improved Deep Embedded Clustering with Local Structure Preservation, IJCAI 2017",
        trains_encoder=False,
    ),
    MethodInfo(
        name="dcn",
        target="coterie.methods.baselines.dcn:DCN",
        title="DCN",
        kind="baseline",
        summary="an auto-encoder pulled towards the centres of its own k-means",
        citation="Yang et al., Towards K-means-friendly Spaces, ICML 2017",
        trains_encoder=False,
    ),
    MethodInfo(
        name="self_train",
        target="coterie.methods.baselines.self_train:SelfTrain",
        title="Self-Train",
        kind="baseline",
        summary="weighted means of word vectors, an auto-encoder, then soft clustering with its own targets",
        citation="Hadifar et al., A Self-Training Approach for Short Text Clustering, RepL4NLP 2019",
        trains_encoder=False,
    ),
)


def find_method(name: str) -> MethodInfo:
    """Return the method called ``name``; raise an error with the nearest name."""
    for info in METHODS:
        if info.name == name:
            return info
    names = [info.name for info in METHODS]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}? The" if close else "the"
    raise SettingError(f"method {name!r} is unknown; {hint} methods are: {', '.join(names)}")
