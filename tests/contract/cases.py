"""Every registered method in every clustering it offers, and the texts that all of them are fitted on."""

from __future__ import annotations

import importlib.util
import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from conftest import topic_texts
from numpy.typing import NDArray

from coterie import TrainingConfig
from coterie.methods.base import ClusteringMethod
from coterie.methods.registry import METHODS, MethodInfo

K = 3
# UMAP is an optional dependency.
UMAP = ("umap",) if importlib.util.find_spec("umap") else ()
# The first is the default. With the two k-means, labels_ are the nearest centres.
CLUSTERERS = ("kmeans", "spherical", "ward", "average", *UMAP)
# The frozen encoder offers one more.
CLUSTERERS_OF_FROZEN = (*CLUSTERERS, "chosen")
# Clusterings, and methods, whose labels_ are not the nearest centres.
LINKAGES = ("ward", "average", "umap", "chosen")
OWN_PARTITIONS = ("auto", "hac_sd", "bertopic")
# Methods that have an encoder but cluster other vectors than its embeddings: the default method joins them with
# lexical vectors.
NETWORKS = {"ae", "dec", "idec", "dcn", "self_train"}
OWN_VECTORS = {"auto", "sif", *NETWORKS}
TAKE_VECTORS = ("frozen", "hac_sd", "bertopic", *NETWORKS)
FAST_TRAINING = TrainingConfig(max_steps=2, batch_size=8, precision="float32")
# Settings that make a fit fast; what a test needs beyond them it sets itself.
FAST_SETTINGS: dict[str, dict[str, Any]] = {
    # Without the guard, which would undo the training of a random encoder.
    "auto": {"guard": False, "rounds": 2},
    # One round goes through all its steps.
    "hac_sd": {"max_rounds": 1},
    # A vocabulary that 24 texts can have.
    "deccrl": {"min_df": 1, "max_df": 1.0, "stop_words": None, "topic_steps": 2},
    "stcc": {"epochs": 2, "n_bits": 8, "word_dimension": 8},
    # Half a dozen steps.
    "lexical": {"hidden": 16, "dimension": 8, "epochs": 1, "min_steps": 6},
    "ae": {"layers": "16-6", "pretrain_steps": 20},
    # A random encoder's vectors are so close together that a step of the default length would leave their centres.
    **{
        name: {"layers": "16-6", "pretrain_steps": 20, "max_steps": 3, "learning_rate": 1e-5}
        for name in ("dec", "idec", "dcn", "self_train")
    },
    # One step in each of the three stages.
    "aecl": {"stage_1": 1, "stage_2": 1, "stage_3": 1, "training": replace(FAST_TRAINING, max_steps=3)},
    "rstc": {
        "contrast_epochs": 1,
        "kmeans_epochs": 1,
        "transport_epochs": 1,
        "training": replace(FAST_TRAINING, max_steps=3),
    },
}
# A trained head needs this many steps until it separates the clusters; until then some may be empty.
CONVERGED_SETTINGS: dict[str, dict[str, Any]] = {
    "aecl": {
        "stage_2": 80,
        "training": replace(FAST_TRAINING, max_steps=246, max_epochs=82, head_learning_rate=3e-3),
    },
    "rstc": {
        "kmeans_epochs": 40,
        "training": replace(FAST_TRAINING, max_steps=126, max_epochs=42, learning_rate=1e-3, head_learning_rate=5e-3),
    },
}

DISTINCT = topic_texts(24)[0]
# With empty rows of all kinds in the middle and repeated texts at the end.
ROWS: list[str | None] = [*DISTINCT[:10], "", None, " \t\n", *DISTINCT[10:], *DISTINCT[:5], DISTINCT[0]]
IS_EMPTY = np.array([text is None or not text.strip() for text in ROWS])
# Texts that are not fitted on: of different lengths, with unknown words, one longer than the encoder's maximum.
UNSEEN = [*topic_texts(20, seed=9)[0], "parcel", "xyzzy", "?!", "where is my refund " * 30, "Äpfel 日本語 🙂"]


@dataclass(frozen=True)
class Case:
    """A method in one of its clusterings, with the settings that make it fast."""

    info: MethodInfo
    clusterer: str | None

    def __str__(self) -> str:
        return self.info.name if self.clusterer is None else f"{self.info.name}-{self.clusterer}"

    @property
    def parameters(self) -> list[str]:
        return list(inspect.signature(self.info.load()).parameters)

    @property
    def has_encoder(self) -> bool:
        return "encoder" in self.parameters

    @property
    def head_decides(self) -> bool:
        """Whether labels_ come from a trained network and not from the nearest centre."""
        return self.info.name in CONVERGED_SETTINGS

    @property
    def batch_decides(self) -> bool:
        """Whether that network attends to the other texts of a training batch."""
        return self.info.name == "aecl"

    @property
    def centers_are_trained(self) -> bool:
        """Whether training moves the centres away from the means of their texts."""
        return self.info.name in {"deccrl", "uftc", "dec", "idec", "dcn", "self_train"}

    @property
    def projects(self) -> bool:
        """Whether a linear layer follows pooling and normalisation."""
        return self.info.name == "deccrl"

    @property
    def folder_is_encoder(self) -> bool:
        """Whether the saved folder, read as a SentenceTransformer, gives the vectors of ``transform``."""
        return self.has_encoder and self.info.name not in OWN_VECTORS

    @property
    def trains_network(self) -> bool:
        """Whether a network is trained on fixed vectors."""
        return self.info.name in NETWORKS or self.info.name == "lexical"

    @property
    def fast_training(self) -> TrainingConfig:
        """The training configuration of :meth:`make`."""
        chosen: TrainingConfig = FAST_SETTINGS.get(self.info.name, {}).get("training", FAST_TRAINING)
        return chosen

    @property
    def is_linkage(self) -> bool:
        """Whether labels_ are a partition that the nearest centres only approximate."""
        return self.clusterer in LINKAGES or self.info.name in OWN_PARTITIONS

    @property
    def takes_vectors(self) -> bool:
        """Whether fit and predict accept embeddings=."""
        return self.info.name in TAKE_VECTORS

    def make(self, folder: Path, *, n_clusters: Any = K, converged: bool = False, **settings: Any) -> ClusteringMethod:
        """Return the estimator, not fitted; ``folder`` is its encoder's, ``converged`` trains a head to the end."""
        chosen: dict[str, Any] = {"n_clusters": n_clusters}
        if self.clusterer is not None:
            chosen["clusterer"] = self.clusterer
        if self.has_encoder:
            chosen |= {"encoder": str(folder), "device": "cpu"}
        if "training" in self.parameters:
            chosen["training"] = FAST_TRAINING
        chosen |= FAST_SETTINGS.get(self.info.name, {})
        if converged:
            chosen |= CONVERGED_SETTINGS.get(self.info.name, {})
        return self.info.load()(**{**chosen, **settings})


def _cases() -> list[Case]:
    cases = []
    for info in METHODS:
        if not info.available:
            continue  # the method's own tests check the message about the missing package
        offers = "clusterer" in inspect.signature(info.load()).parameters
        clusterers = CLUSTERERS_OF_FROZEN if info.name == "frozen" else CLUSTERERS
        cases += [Case(info, name) for name in clusterers] if offers else [Case(info, None)]
    return cases


CASES = _cases()
# One case per method, for what does not depend on the clustering.
METHOD_CASES = [case for case in CASES if case.clusterer in (None, CLUSTERERS[0])]
ENCODER_CASES = [case for case in METHOD_CASES if case.has_encoder]
FOLDER_CASES = [case for case in ENCODER_CASES if case.folder_is_encoder]
TRAINED_CASES = [case for case in METHOD_CASES if case.info.trains_encoder]


def dense(vectors: Any) -> NDArray[Any]:
    """Return dense or sparse vectors as an array."""
    from scipy import sparse

    return vectors.toarray() if sparse.issparse(vectors) else np.asarray(vectors)


def training(**settings: Any) -> TrainingConfig:
    """Return the fast training configuration with ``settings`` changed."""
    return replace(FAST_TRAINING, **settings)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below ``folder``, to compare before and after."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
