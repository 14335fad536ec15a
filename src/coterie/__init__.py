"""Coterie: groups short texts into clusters people can trust, by fine-tuning sentence encoders without labels.

Public names are loaded when first used: importing this package imports nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Coterie": "coterie.methods.auto.method",
    "SCCL": "coterie.methods.sccl",
    "AECL": "coterie.methods.aecl.method",
    "DECCRL": "coterie.methods.deccrl.method",
    "ClusterBERT": "coterie.methods.clusterbert",
    "UFTC": "coterie.methods.uftc",
    "FrozenEncoder": "coterie.methods.baselines.frozen",
    "TfIdf": "coterie.methods.baselines.tfidf",
    "BagOfWords": "coterie.methods.baselines.bow",
    "HACSD": "coterie.methods.baselines.hac_sd.method",
    "BERTopicClusters": "coterie.methods.baselines.bertopic",
    "RSTC": "coterie.methods.baselines.rstc",
    "TSDAE": "coterie.methods.baselines.tsdae",
    "STCC": "coterie.methods.baselines.stcc.method",
    "SIF": "coterie.methods.baselines.sif",
    "AutoEncoder": "coterie.methods.baselines.autoencoder",
    "DEC": "coterie.methods.baselines.dec",
    "IDEC": "coterie.methods.baselines.idec",
    "DCN": "coterie.methods.baselines.dcn",
    "SelfTrain": "coterie.methods.baselines.self_train",
    "TrainingConfig": "coterie.training.config",
    "Corpus": "coterie.text.corpus",
    "read_corpus": "coterie.text.reading",
    "load": "coterie.methods.persistence",
    "load_dataset": "coterie.datasets.loading",
    "describe_clusters": "coterie.describe.clusters",
    "plot": "coterie.report.plots.plot",
    "evaluate": "coterie.metrics.external.scores",
    "CoterieError": "coterie.errors",
}

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from coterie.datasets.loading import load_dataset as load_dataset
    from coterie.describe.clusters import describe_clusters as describe_clusters
    from coterie.errors import CoterieError as CoterieError
    from coterie.methods.aecl.method import AECL as AECL
    from coterie.methods.auto.method import Coterie as Coterie
    from coterie.methods.baselines.autoencoder import AutoEncoder as AutoEncoder
    from coterie.methods.baselines.bertopic import BERTopicClusters as BERTopicClusters
    from coterie.methods.baselines.bow import BagOfWords as BagOfWords
    from coterie.methods.baselines.dcn import DCN as DCN
    from coterie.methods.baselines.dec import DEC as DEC
    from coterie.methods.baselines.frozen import FrozenEncoder as FrozenEncoder
    from coterie.methods.baselines.hac_sd.method import HACSD as HACSD
    from coterie.methods.baselines.idec import IDEC as IDEC
    from coterie.methods.baselines.rstc import RSTC as RSTC
    from coterie.methods.baselines.self_train import SelfTrain as SelfTrain
    from coterie.methods.baselines.sif import SIF as SIF
    from coterie.methods.baselines.stcc.method import STCC as STCC
    from coterie.methods.baselines.tfidf import TfIdf as TfIdf
    from coterie.methods.baselines.tsdae import TSDAE as TSDAE
    from coterie.methods.clusterbert import ClusterBERT as ClusterBERT
    from coterie.methods.deccrl.method import DECCRL as DECCRL
    from coterie.methods.persistence import load as load
    from coterie.methods.sccl import SCCL as SCCL
    from coterie.methods.uftc import UFTC as UFTC
    from coterie.metrics.external.scores import evaluate as evaluate
    from coterie.report.plots.plot import plot as plot
    from coterie.text.corpus import Corpus as Corpus
    from coterie.text.reading import read_corpus as read_corpus
    from coterie.training.config import TrainingConfig as TrainingConfig


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'coterie' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
