"""HACSD: the linkage alone, the rounds after it, given vectors, more texts than can be held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import topic_texts

import coterie
from coterie import HACSD
from coterie.clustering import agglomerative
from coterie.errors import InputError, SettingError
from coterie.methods.baselines.hac_sd import method as hac_sd
from coterie.methods.baselines.hac_sd.iterative_classification import iterative_classification
from coterie.methods.baselines.hac_sd.sparse_similarity import sparse_similarity_labels

TEXTS, TOPICS = topic_texts(60)


def _vectors(scale: float = 0.35) -> np.ndarray:
    """Three clusters with some rows between them."""
    generator = np.random.default_rng(0)
    clusters = np.array([sorted(set(TOPICS)).index(name) for name in TOPICS])
    return np.eye(3, 6)[clusters] + generator.normal(scale=scale, size=(60, 6))


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize("linkage", ["average", "ward"])
def test_without_classification_it_is_the_linkage(linkage: str) -> None:
    vectors = _vectors()
    model = HACSD(3, iterative_classification=False, linkage=linkage).fit(TEXTS, embeddings=vectors)
    expected = sparse_similarity_labels(vectors.astype(np.float32), 3, np.ones(60, dtype=np.int64), linkage)
    assert _same(model.labels_, expected)
    assert not any("iterative" in note for note in model.notes_)


def test_classification_starts_from_the_linkage() -> None:
    vectors = _vectors(scale=0.8).astype(np.float32)
    counts = np.ones(60, dtype=np.int64)
    start = sparse_similarity_labels(vectors, 3, counts)
    better = iterative_classification(vectors, start, 3, counts, seed=5, max_rounds=3)
    model = HACSD(3, max_rounds=3, random_state=5).fit(TEXTS, embeddings=vectors)
    assert _same(model.labels_, better.labels)
    moved = (better.labels != start).mean()
    assert moved > 0, "or the comparison says nothing"
    assert any(f"moved {moved:.1%} of the rows in {better.rounds} round" in note for note in model.notes_)


def test_groups_that_stand_apart_are_found() -> None:
    model = HACSD(3, max_rounds=2).fit(TEXTS, embeddings=_vectors(scale=0.05))
    assert _same(model.labels_, np.array([sorted(set(TOPICS)).index(name) for name in TOPICS]))
    assert model.predict_agreement_ == 1


def test_predict_goes_by_the_nearest_mean(tmp_path: Path) -> None:
    vectors = _vectors()
    model = HACSD(3, max_rounds=1).fit(TEXTS, embeddings=vectors)
    distances = np.linalg.norm(vectors[:, None] - model.cluster_centers_[None], axis=2)
    unseen = [f"{text}, again" for text in TEXTS]
    model.save_pretrained(tmp_path / "model")
    loaded = coterie.load(tmp_path / "model")
    for each in (model, loaded):
        np.testing.assert_array_equal(each.predict(unseen, embeddings=vectors), distances.argmin(axis=1))
        np.testing.assert_array_equal(each.predict(TEXTS, embeddings=vectors), model.labels_)
    with pytest.raises(SettingError, match="given embeddings"):
        loaded.predict(TEXTS)


def test_more_texts_than_can_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agglomerative, "LARGEST", 40)
    monkeypatch.setattr(hac_sd, "LARGEST", 40)
    model = HACSD(3, max_rounds=1)
    with pytest.raises(InputError, match=r"limited to 40 texts.*sample=20000.*--sample 20000"):
        model.fit(TEXTS, embeddings=_vectors())
    with pytest.raises(InputError, match="40 texts that can be held"):
        model.fit(TEXTS, embeddings=_vectors(), sample=50)
    model.fit(TEXTS, embeddings=_vectors(), sample=30)
    assert (model.labels_ >= 0).all() and len(model.labels_) == 60
