"""clusterer="umap": UMAP, k-means there, means in the space of the vectors."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts
from stand_ins import stand_in_umap, without

import coterie
from coterie import BagOfWords, FrozenEncoder, TfIdf
from coterie.clustering.kmeans import kmeans
from coterie.errors import MissingExtraError

TEXTS, TOPICS = topic_texts(60)
METHODS = [FrozenEncoder, TfIdf, BagOfWords]


@pytest.mark.parametrize("method", METHODS)
def test_without_the_package_fit_names_the_command(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "umap")
    model = method(3, clusterer="umap")
    with pytest.raises(MissingExtraError, match=r"pip install 'coterie\[umap\]'") as caught:
        model.fit(TEXTS)
    assert "\n" not in str(caught.value)
    assert set(vars(model)) == set(inspect.signature(method).parameters)


def _vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 9)).astype(np.float32)


def test_k_means_sees_the_reduced_vectors_and_predict_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    used = stand_in_umap(monkeypatch)
    vectors = _vectors()
    model = FrozenEncoder(3, clusterer="umap", random_state=7).fit(TEXTS, embeddings=vectors)
    settings = {"n_neighbors": 15, "n_components": 5, "min_dist": 0.0, "metric": "cosine", "random_state": 7}
    assert settings.items() <= used[0].items()
    expected = kmeans(vectors[:, :5], 3, weights=np.ones(60), seed=7).labels
    assert len(set(zip(expected.tolist(), model.labels_.tolist(), strict=True))) == 3
    for k in range(3):
        np.testing.assert_allclose(model.cluster_centers_[k], vectors[model.labels_ == k].mean(axis=0), atol=1e-5)
    nearest = np.linalg.norm(vectors[:, None] - model.cluster_centers_[None], axis=2).argmin(axis=1)
    assert 0 < (nearest != model.labels_).mean() == pytest.approx(1 - model.predict_agreement_)
    # A saved model answers where UMAP is not installed.
    model.save_pretrained(tmp_path / "model")
    without(monkeypatch, "umap")
    loaded, unseen = coterie.load(tmp_path / "model"), [f"{text}, again" for text in TEXTS]
    np.testing.assert_array_equal(loaded.predict(unseen, embeddings=vectors), nearest)
    np.testing.assert_array_equal(loaded.predict(TEXTS, embeddings=vectors), model.labels_)


def test_repeated_texts_are_one_point_with_a_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    used = stand_in_umap(monkeypatch)
    vectors, times = _vectors(), 1 + 30 * (np.arange(60) % 9 == 0)
    texts = np.repeat(np.array(TEXTS, dtype=object), times).tolist()
    model = FrozenEncoder(3, clusterer="umap").fit(texts, embeddings=np.repeat(vectors, times, axis=0))
    assert used[0]["rows"] == 60
    weighted = kmeans(vectors[:, :5], 3, weights=times, seed=0).labels
    labels = dict(zip(texts, model.labels_.tolist(), strict=True))
    assert len({(k, labels[text]) for k, text in zip(weighted.tolist(), TEXTS, strict=True)}) == 3
    plain = kmeans(vectors[:, :5], 3, seed=0).labels
    assert len({(k, labels[text]) for k, text in zip(plain.tolist(), TEXTS, strict=True)}) > 3, "weights do nothing"


@pytest.mark.parametrize("method", [TfIdf, BagOfWords])
def test_words(method: Any) -> None:
    pytest.importorskip("umap")
    texts = [*TEXTS, "xyzzy"]
    model = method(3, clusterer="umap", max_features=30).fit(texts)
    np.testing.assert_array_equal(model.labels_, method(3, clusterer="umap", max_features=30).fit(texts).labels_)
    assert coterie.evaluate(TOPICS, model.labels_[:60].tolist()).accuracy > 0.8
    assert model.confidence_[60] == 0
