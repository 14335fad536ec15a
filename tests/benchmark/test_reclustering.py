"""Other clusterings of a fitted method's embeddings."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from threadpoolctl import threadpool_limits
from worker_thread import WorkerThread

import coterie.benchmark.reclustering as reclustering
import coterie.clustering.agglomerative as agglomerative
import coterie.clustering.umap_reduction as umap_reduction
from coterie.benchmark.reclustering import TITLES, recluster
from coterie.benchmark.rows import ROWS, Row
from coterie.benchmark.runner import expected_seconds, run_jobs
from coterie.benchmark.sets import find_set, load_set
from coterie.benchmark.specs import TableSpec
from coterie.benchmark.store import Job, Store
from coterie.benchmark.tables import build_table
from coterie.methods.baselines.idec import IDEC
from coterie.metrics.external.scores import ari
from coterie.text.corpus import Corpus, as_corpus

TEXTS, NAMES = topic_texts(60)


def _groups(repeated: int = 0) -> tuple[Corpus, Any, list[str]]:
    """Texts, some of them twice, and vectors that lie in three heaps."""
    names = [*NAMES, *NAMES[:repeated]]
    codes = np.array([sorted(set(NAMES)).index(name) for name in names])
    vectors = np.eye(3, 16, dtype=np.float32)[codes] * 5
    noise = np.random.default_rng(0).normal(scale=0.1, size=(60, 16)).astype(np.float32)
    vectors += np.concatenate([noise, noise[:repeated]])
    return as_corpus([*TEXTS, *TEXTS[:repeated]]), vectors, names


@pytest.mark.parametrize("name", list(TITLES))
def test_every_clustering_finds_heaps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclustering, "LAYERS", "16-{}")  # quick, and enough for heaps
    if name.startswith("umap"):
        pytest.importorskip("umap")
    corpus, vectors, names = _groups(repeated=5)
    found = recluster([name], corpus, vectors, 3, 0, "cpu")
    assert found.notes == [] and list(found.partitions) == list(found.seconds) == [f"on_{name}"]
    labels = found.partitions[f"on_{name}"]
    assert len(labels) == 65 and labels[:5].tolist() == labels[60:].tolist()
    assert ari(names, labels) > 0.9


def test_umap_leaves_the_threads_as_they_were() -> None:
    pytest.importorskip("umap")
    corpus, vectors, _ = _groups()
    with threadpool_limits(1, user_api="openmp"):
        assert torch.get_num_threads() == 1
        recluster(["umap"], corpus, vectors, 3, 0, "cpu")
        assert torch.get_num_threads() == 1


def test_sparse_vectors_are_clustered_too() -> None:
    from scipy.sparse import csr_matrix

    corpus, vectors, _ = _groups()
    dense, sparse = (recluster(["kmeans"], corpus, each, 3, 0, "cpu") for each in (vectors, csr_matrix(vectors)))
    assert np.array_equal(dense.partitions["on_kmeans"], sparse.partitions["on_kmeans"])


def test_dimensions_follow_the_clusters_and_umap_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the paper has them: one more than clusters, for UMAP and for IDEC's latent space; 150 epochs at most."""
    asked: list[tuple[tuple[int, ...], int]] = []
    built: list[dict[str, Any]] = []
    real = IDEC.__init__

    def reduced(features: Any, n_components: int, seed: int) -> Any:
        asked.append((features.shape, n_components))
        return features[:, :n_components]

    def initialised(self: IDEC, *arguments: Any, **settings: Any) -> None:
        built.append(settings)
        real(self, *arguments, **{**settings, "max_steps": 5, "layers": "8-4"})

    monkeypatch.setattr(umap_reduction, "umap_reduced", reduced)
    monkeypatch.setattr(IDEC, "__init__", initialised)
    corpus, vectors, _ = _groups(repeated=5)
    found = recluster(["umap", "umap-idec"], corpus, vectors, 3, 0, "cpu")
    assert set(found.partitions) == {"on_umap", "on_umap-idec"}
    assert asked == [((60, 16), 4)]
    assert (built[0]["layers"], built[0]["learning_rate"]) == ("500-500-2000-4", 1e-4)
    assert built[0]["max_steps"] * built[0]["batch_size"] >= 150 * 60 > (built[0]["max_steps"] - 150) * 256


def test_what_cannot_be_had_is_noted_and_the_others_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    monkeypatch.setattr(agglomerative, "LARGEST", 50)
    corpus, vectors, _ = _groups()
    found = recluster(["umap", "ward", "kmeans", "umap-idec"], corpus, vectors, 3, 0, "cpu")
    assert list(found.partitions) == list(found.seconds) == ["on_kmeans"]
    assert [note.partition(":")[0] for note in found.notes] == [
        "UMAP + k-means was left out",
        "Ward was left out",
        "UMAP + IDEC was left out",
    ]
    assert "pip install 'coterie[umap]'" in found.notes[0] and "50 texts" in found.notes[1]


def test_a_run_keeps_and_scores_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.benchmark.runner._new_process", WorkerThread)
    support = find_set("support")
    row = Row("twice", "Twice", "tfidf", {"max_features": 200}, reclustered=("kmeans", "average"))
    job, store = Job(row, support, 0), Store(tmp_path)
    run_jobs([job], store, device="cpu")
    record = store.read(job.name)
    assert len(store.assignments(job.name)["on_average"]) == len(load_set(support).texts)
    assert 10 < record["scores"]["on_kmeans"]["accuracy"] < 100
    seconds = record["seconds"]
    assert expected_seconds(job, 1, store) == seconds["fit"] + seconds["on_kmeans"] + seconds["on_average"]


def test_other_clusterings_make_another_run() -> None:
    support = find_set("support")
    row = Row("twice", "Twice", "tfidf")
    names = {Job(replace(row, reclustered=each), support, 0).name for each in ((), ("kmeans",), ("kmeans", "umap"))}
    assert len(names) == 3


def test_a_clustering_that_was_left_out_is_a_gap_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row("twice", "Twice", "tfidf", reclustered=("kmeans", "umap"))
    monkeypatch.setattr("coterie.benchmark.catalogue.ROWS", (*ROWS, row))
    store = Store(tmp_path)
    for dataset, answers in (("tweet", ("on_kmeans", "on_umap")), ("agnews", ("on_kmeans",))):
        scores = {answer: {"accuracy": 50.0} for answer in answers}
        record = {"dataset": dataset, "protocol": 1, "source_digest": "a", "scores": {"final": None, **scores}}
        store.write(Job(row, find_set(dataset), 0).name, record)
    spec = TableSpec("x", "x", ("tweet", "agnews"), ("accuracy",), rows=("twice",), answers=("on_kmeans", "on_umap"))
    table = build_table(spec, store)
    assert [line.title for line in table.lines] == ["Twice: k-means", "Twice: UMAP + k-means"]
    assert table.cells["twice:on_umap", "tweet", "accuracy"].values == (50.0,)
    assert table.cells["twice:on_umap", "agnews", "accuracy"].values == ()
