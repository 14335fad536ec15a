"""The rows of the tables: a method with its settings, one setting for all sets."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from coterie.benchmark.sets import BenchmarkSet
from coterie.methods.registry import find_method

# Results of different protocols are never mixed. Increase it when anything that all runs share changes.
PROTOCOL = 1
# Settings of all methods that have such a parameter. Snapshots are for the oracle column alone.
COMMON: Mapping[str, Any] = MappingProxyType(
    {"augmentation": "word_deletion", "augmentation_ratio": 0.2, "training.snapshot_every": 1}
)
SEEDS = tuple(range(5))
NOTHING: Mapping[str, Any] = MappingProxyType({})
TFIDF_2000: Mapping[str, Any] = MappingProxyType({"max_features": 2000, "stop_words": "english"})
# First day of runs of the default method, and of its start, as they are now.
DEFAULT_CHANGED = "2026-11-20"
VASCL: Mapping[str, Any] = MappingProxyType({"encoder": "aws-ai/vascl-roberta-large"})


@dataclass(frozen=True)
class Row:
    """A row of the benchmark.

    Attributes
    ----------
    name, title:
        ``name`` is used in file names and commands, ``title`` in tables.
    method, settings:
        As ``coterie fit --method … --set …`` takes them.
    published:
        Its name among published figures (see :mod:`coterie.benchmark.published`).
    missing:
        Why it is not run with the others, if so: its weights may be unavailable. By its name it is run all the same.
    requires:
        A module of an optional dependency that these settings need in addition to those of the method.
    uses_seed:
        Whether runs with other seeds differ; if not, there is a single run.
    reclustered:
        Other clusterings of the embeddings after the fit (see :mod:`coterie.benchmark.reclustering`).
    changed:
        Date on which the method itself was changed, such as 2026-11-19. Earlier runs are outdated.
    """

    name: str
    title: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    published: str = ""
    missing: str = ""
    requires: str = ""
    uses_seed: bool = True
    reclustered: tuple[str, ...] = ()
    changed: str = ""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that a complete table has of this row."""
        return SEEDS if self.uses_seed else SEEDS[:1]

    def is_outdated(self, record: Mapping[str, Any]) -> bool:
        """Return whether a run was made before the method was changed."""
        return bool(self.changed) and record["date"] < self.changed

    def has_seed(self, seed: int) -> bool:
        """Return whether a run with this seed can differ from the others."""
        return self.uses_seed or seed in self.seeds

    @property
    def installed(self) -> bool:
        """Whether the packages that it needs are installed."""
        here = not self.requires or importlib.util.find_spec(self.requires) is not None
        return here and find_method(self.method).available

    @property
    def runs_here(self) -> bool:
        return self.installed and not self.missing

    def settings_for(self, dataset: BenchmarkSet) -> dict[str, Any]:
        """Return all settings of a run on ``dataset``, as far as the method has such parameters."""
        from coterie.methods.build_method import setting_defaults

        known = setting_defaults(find_method(self.method).load())
        common = {**COMMON, "max_length": dataset.max_length}
        return {**{name: value for name, value in common.items() if name in known}, **self.settings}


def _on(name: str, title: str, method: str) -> tuple[Row, Row]:
    """Return two rows of a network over vectors: on TF-IDF and on the frozen encoder's embeddings."""
    return (
        Row(f"{name}-tfidf", f"{title} on TF-IDF", method, {"features": "tfidf"}, published=name),
        Row(f"{name}-embedding", f"{title} on embeddings", method, {"features": "embedding"}, published=name),
    )


ROWS: tuple[Row, ...] = (
    Row("bow", "BoW + k-means", "bow", published="bow"),
    Row("tfidf", "TF-IDF (1,500) + k-means", "tfidf", published="tfidf"),
    Row("tfidf-2000", "TF-IDF (2,000, stop words out) + k-means", "tfidf", TFIDF_2000, published="tfidf_2000"),
    Row("frozen-kmeans", "frozen encoder + k-means", "frozen", published="frozen"),
    Row("frozen-cls", "frozen encoder, CLS + k-means", "frozen", {"pooling": "cls"}),
    Row("frozen-ward", "frozen encoder + Ward", "frozen", {"clusterer": "ward"}, uses_seed=False),
    Row("frozen-average", "frozen encoder + average linkage", "frozen", {"clusterer": "average"}, uses_seed=False),
    Row("umap-kmeans", "frozen encoder + UMAP + k-means", "frozen", {"clusterer": "umap"}, requires="umap"),
    Row(
        "frozen-chosen",
        "frozen encoder + the clustering chosen without labels",
        "frozen",
        {"clusterer": "chosen"},
        changed=DEFAULT_CHANGED,
    ),
    Row("sif", "SIF + k-means", "sif", published="sif"),
    Row("lexical", "Lexical clusters", "lexical"),
    *_on("ae", "AE + k-means", "ae"),
    *_on("dec", "DEC", "dec"),
    *_on("idec", "IDEC", "idec"),
    *_on("dcn", "DCN", "dcn"),
    Row("self-train", "Self-Train", "self_train", published="self_train"),
    Row("hac-sd", "HAC-SD", "hac_sd", {"iterative_classification": False}, published="hac_sd", uses_seed=False),
    Row("hac-sd-ic", "HAC-SD + iterative classification", "hac_sd", published="hac_sd_ic"),
    Row("hac-sd-ward-ic", "HAC-SD with Ward + iterative classification", "hac_sd", {"linkage": "ward"}),
    Row("stcc", "STCC", "stcc", published="stcc", requires="gensim"),
    Row("tsdae", "TSDAE + k-means", "tsdae", published="tsdae"),
    Row("vascl", "VaSCL + k-means", "frozen", VASCL, published="vascl", missing="no weights"),
    Row("rstc", "RSTC", "rstc", published="rstc"),
    Row("bertopic", "BERTopic", "bertopic", published="bertopic"),
    Row("uftc", "UFTC", "uftc", published="uftc"),
    Row("clusterbert", "ClusterBERT", "clusterbert", published="clusterbert"),
    Row("deccrl", "DECCRL", "deccrl", published="deccrl"),
    Row("aecl", "AECL", "aecl", published="aecl"),
    Row("sccl", "SCCL", "sccl", published="sccl"),
    Row("auto", "Coterie", "auto", changed=DEFAULT_CHANGED),
)
