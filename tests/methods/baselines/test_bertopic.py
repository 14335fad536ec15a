"""BERTopicClusters: with the package where it is installed, with a stand-in for it anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts
from stand_ins import stand_in_bertopic, stand_in_umap, without

import coterie
from coterie import BERTopicClusters
from coterie.clustering.kmeans import kmeans
from coterie.errors import MissingExtraError
from coterie.methods.registry import find_method

TEXTS, TOPICS = topic_texts(60)


def _vectors(scale: float = 1.0) -> np.ndarray:
    clusters = [sorted(set(TOPICS)).index(name) for name in TOPICS]
    noise = np.random.default_rng(0).normal(scale=scale, size=(60, 9))
    return (np.eye(3, 9)[clusters] + noise).astype(np.float32)


def test_without_the_package_fit_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "bertopic")
    info = find_method("bertopic")
    assert not info.available
    assert info.load() is BERTopicClusters, "listing and loading need no package"
    with pytest.raises(MissingExtraError, match=r"'bertopic'.*pip install 'coterie\[bertopic\]'"):
        BERTopicClusters(3).fit(TEXTS)


def test_methods_without_a_package_are_always_there() -> None:
    assert all(find_method(name).available for name in ("sccl", "frozen", "hac_sd"))


def test_what_the_package_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings, used = stand_in_umap(monkeypatch), stand_in_bertopic(monkeypatch)
    vectors, times = _vectors(), 1 + 30 * (np.arange(60) % 9 == 0)
    texts = np.repeat(np.array(TEXTS, dtype=object), times).tolist()
    model = BERTopicClusters(3, random_state=7).fit(texts, embeddings=np.repeat(vectors, times, axis=0))
    assert used[0]["documents"] == TEXTS, "each text is one document"
    assert {"n_neighbors": 15, "n_components": 5, "min_dist": 0.0, "random_state": 7}.items() <= settings[0].items()
    expected = kmeans(used[0]["reduced"], 3, weights=times, n_init=1, seed=7).labels
    labels = dict(zip(texts, model.labels_.tolist(), strict=True))
    assert len({(k, labels[text]) for k, text in zip(expected.tolist(), TEXTS, strict=True)}) == 3
    # A saved model answers where the package is not installed.
    model.save_pretrained(tmp_path / "model")
    for name in ("umap", "bertopic"):
        without(monkeypatch, name)
    answer = coterie.load(tmp_path / "model").predict([f"{text}, again" for text in TEXTS], embeddings=vectors)
    nearest = np.linalg.norm(vectors[:, None] - model.cluster_centers_[None], axis=2).argmin(axis=1)
    np.testing.assert_array_equal(answer, nearest)


def test_the_package_itself() -> None:
    pytest.importorskip("bertopic")
    vectors = _vectors(scale=0.2)
    model = BERTopicClusters(3).fit(TEXTS, embeddings=vectors)
    assert coterie.evaluate(TOPICS, model.labels_.tolist()).accuracy == 1
    np.testing.assert_array_equal(BERTopicClusters(3).fit(TEXTS, embeddings=vectors).labels_, model.labels_)
