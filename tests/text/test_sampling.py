"""Which texts are drawn, and fit(..., sample=N): learned on some, assigned to all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts

import coterie
from coterie import AECL, SCCL, BagOfWords, Corpus, FrozenEncoder, TfIdf, TrainingConfig
from coterie.clustering import agglomerative
from coterie.errors import InputError, SettingError
from coterie.methods import assignment
from coterie.methods.baselines import partition
from coterie.text.sampling import draw_sample

TEXTS = topic_texts(90)[0]
# Some texts again, and empty rows: the first text five times in all.
ROWS = [*TEXTS[:40], "", *TEXTS[40:], " ", *TEXTS[:20], *[TEXTS[0]] * 3]
FAST = TrainingConfig(max_steps=2, batch_size=8, precision="float32")


# --- the draw ---


def test_drawn_texts_keep_their_order_and_their_weight() -> None:
    corpus = Corpus.from_texts(ROWS)
    sample = draw_sample(corpus, 30, seed=1)
    assert len(sample.drawn) == 30
    assert (np.diff(sample.drawn) > 0).all()
    assert sample.corpus.distinct == tuple(corpus.distinct[i] for i in sample.drawn)
    np.testing.assert_array_equal(sample.corpus.counts, corpus.counts[sample.drawn])
    np.testing.assert_array_equal(np.sort(np.concatenate([sample.drawn, sample.others])), np.arange(90))


def test_the_seed_decides_and_every_text_is_as_likely() -> None:
    corpus = Corpus.from_texts(ROWS)
    assert np.array_equal(draw_sample(corpus, 30, seed=1).drawn, draw_sample(corpus, 30, seed=1).drawn)
    assert not np.array_equal(draw_sample(corpus, 30, seed=1).drawn, draw_sample(corpus, 30, seed=2).drawn)
    times = np.zeros(90)
    for seed in range(600):
        sample = draw_sample(corpus, 30, seed)
        assert not sample.corpus.empty.any()
        times[sample.drawn] += 1
    # A third of the draws each, whatever a text's count: five standard deviations of a binomial.
    np.testing.assert_allclose(times, 200, atol=58)


@pytest.mark.parametrize("size", [None, 90, 1000])
def test_nothing_is_drawn_where_nothing_is_left_out(size: int | None) -> None:
    corpus = Corpus.from_texts(ROWS)
    sample = draw_sample(corpus, size, seed=1)
    assert sample.corpus is corpus
    assert len(sample.others) == 0
    vectors = np.zeros((90, 2), dtype=np.float32)
    assert sample.rows_of(vectors) is vectors


def test_repeats_are_thinned_to_the_rows_that_can_be_held() -> None:
    texts = [*["often"] * 61, *["sometimes"] * 31, *["rare"] * 2, "once", "left out"]
    corpus = Corpus.from_texts(texts)
    seed = next(seed for seed in range(99) if draw_sample(corpus, 4, seed).others.tolist() == [4])
    sample = draw_sample(corpus, 4, seed, most_rows=50)
    # 46 rows are left beside one for each text: half of the 91 repeats.
    assert sample.corpus.counts.tolist() == [31, 16, 1, 1]
    assert any("49 rows are all" in remark for remark in sample.notes())
    assert sample.corpus.distinct == ("often", "sometimes", "rare", "once")
    assert draw_sample(corpus, 4, seed, most_rows=95).corpus.counts.sum() == 95
    assert not any("repeats" in remark for remark in draw_sample(corpus, 4, seed, most_rows=95).notes())
    assert draw_sample(corpus, 4, seed, most_rows=2).corpus.counts.tolist() == [1, 1, 1, 1]


# --- the fit ---


def models(encoder: Path) -> dict[str, Any]:
    shared: dict[str, Any] = {"encoder": str(encoder), "device": "cpu"}
    return {
        "tfidf": TfIdf(3),
        "spherical": BagOfWords(3, clusterer="spherical"),
        "frozen": FrozenEncoder(3, **shared),
        "sccl": SCCL(3, training=FAST, **shared),
        "aecl": AECL(
            3,
            stage_1=1,
            stage_2=60,
            stage_3=1,
            training=TrainingConfig(max_steps=300, max_epochs=62, batch_size=8, head_learning_rate=5e-3),
            **shared,
        ),
    }


@pytest.mark.parametrize("name", ["tfidf", "spherical", "frozen", "sccl", "aecl"])
def test_all_rows_are_assigned_as_predict_does(name: str, tiny_encoder: Path, tmp_path: Path) -> None:
    model = models(tiny_encoder)[name].fit(ROWS, sample=30)
    labels = model.labels_
    assert labels.shape == model.confidence_.shape == model.center_distance_.shape == (len(ROWS),)
    empty = np.array([not text.strip() for text in ROWS])
    np.testing.assert_array_equal(labels == -1, empty)
    sizes = np.bincount(labels[~empty], minlength=3)
    assert (np.diff(sizes) <= 0).all(), sizes
    answer = model.assign(ROWS)
    np.testing.assert_array_equal(answer.labels, labels)
    np.testing.assert_allclose(answer.confidence, model.confidence_, atol=1e-4)
    vectors = model.transform(ROWS)
    vectors = vectors.toarray() if hasattr(vectors, "toarray") else vectors
    own = np.linalg.norm(vectors[~empty] - model.cluster_centers_[labels[~empty]], axis=1)
    np.testing.assert_allclose(model.center_distance_[~empty], own, atol=1e-4)
    assert any("sample of 30 of 90 distinct texts" in note for note in model.notes_)
    assert model.timings_["assigning_others"] > 0
    model.save_pretrained(tmp_path / "model")
    loaded = coterie.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.labels_, labels)
    np.testing.assert_array_equal(loaded.predict(ROWS), labels)


def test_only_the_sample_is_learned_on() -> None:
    corpus = Corpus.from_texts(ROWS)
    drawn = draw_sample(corpus, 30, seed=7)
    sampled = TfIdf(3, random_state=7).fit(ROWS, sample=30)
    alone = TfIdf(3, random_state=7).fit(drawn.corpus)
    assert sampled.words_.vocabulary == alone.words_.vocabulary
    np.testing.assert_array_equal(sampled.fit_predict(ROWS, sample=30), sampled.labels_)
    # The same centres, in the order of the sizes over all rows.
    rows = {row.tobytes() for row in alone.cluster_centers_}
    assert {row.tobytes() for row in sampled.cluster_centers_} == rows
    np.testing.assert_array_equal(TfIdf(3).fit(ROWS, sample=90).labels_, TfIdf(3).fit(ROWS).labels_)


def test_other_partitions_are_known_for_the_sample_alone(tiny_encoder: Path) -> None:
    model = models(tiny_encoder)["sccl"].fit(ROWS, sample=30)
    corpus = Corpus.from_texts(ROWS)
    inside = np.isin(corpus.distinct_index, draw_sample(corpus, 30, model.seed_).drawn)
    for labels in (model.initial_labels_, model.kmeans_labels_, model.head_labels_):
        np.testing.assert_array_equal(labels >= 0, inside)
    # k-means is SCCL's own answer.
    np.testing.assert_array_equal(model.kmeans_labels_[inside], model.labels_[inside])
    moved = (model.labels_ != model.initial_labels_)[inside | corpus.empty].mean()
    assert any(note.startswith(f"training moved {moved:.1%}") for note in model.notes_)


def test_sizes_over_all_rows_order_the_clusters() -> None:
    """The larger cluster of the sample is the smaller one of all rows."""
    texts = [f"t{i}" for i in range(40)]
    near = np.array([[0.0, 0.0], [9.0, 9.0]], dtype=np.float32)
    corpus = Corpus.from_texts(texts)
    drawn = draw_sample(corpus, 9, seed=0).drawn
    side = np.ones(40, dtype=np.int64)
    side[drawn[:6]] = 0  # six of the nine drawn texts, and none of the others
    vectors = near[side]
    alone = FrozenEncoder(2).fit([texts[i] for i in drawn], embeddings=vectors[drawn])
    np.testing.assert_array_equal(alone.cluster_centers_, near)
    model = FrozenEncoder(2).fit(texts, embeddings=vectors, sample=9)
    np.testing.assert_array_equal(model.cluster_centers_, near[::-1])
    np.testing.assert_array_equal(model.labels_, 1 - side)
    np.testing.assert_array_equal(model.predict(texts, embeddings=vectors), model.labels_)
    np.testing.assert_array_equal(model.predict_proba(texts, embeddings=vectors).argmax(axis=1), model.labels_)


@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_linkage_of_more_texts_than_it_can_hold(linkage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agglomerative, "LARGEST", 40)
    monkeypatch.setattr(partition, "LARGEST", 40)
    model = TfIdf(3, clusterer=linkage)
    with pytest.raises(InputError, match=r"limited to 40 texts.*sample=20000.*--sample 20000"):
        model.fit(ROWS)
    # Thirty-nine texts with their repeats are more than forty rows.
    rows = [*ROWS, *TEXTS]
    model.fit(rows, sample=39)
    assert any("repeats in the sample" in note for note in model.notes_)
    known = model.labels_ >= 0
    same = (model.predict(rows) == model.labels_)[known]
    assert model.predict_agreement_ == pytest.approx(same.mean())
    assert (np.diff(np.bincount(model.labels_[known])) <= 0).all()


def test_a_sample_of_fewer_texts_than_clusters_is_refused() -> None:
    for sample in (2, 0, -1, 2.5, True):
        with pytest.raises(SettingError, match="sample"):
            TfIdf(3).fit(ROWS, sample=sample)


def test_cut_texts_outside_the_sample_are_told(tiny_encoder: Path) -> None:
    long = [f"{text} {'parcel ' * 80}" for text in TEXTS[:50]]
    model = FrozenEncoder(2, encoder=str(tiny_encoder), device="cpu", max_length=16).fit(long, sample=20)
    assert any("30 of the 30 texts outside the sample were cut" in note for note in model.notes_)


def test_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = TfIdf(3).fit(ROWS, sample=30)
    monkeypatch.setattr(assignment, "TEXTS_PER_BLOCK", 7)
    parts = TfIdf(3).fit(ROWS, sample=30)
    np.testing.assert_array_equal(parts.labels_, whole.labels_)
    np.testing.assert_allclose(parts.confidence_, whole.confidence_, atol=1e-12)
    np.testing.assert_allclose(parts.center_distance_, whole.center_distance_, atol=1e-9)


def test_a_sample_that_a_linkage_cannot_hold_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.methods.baselines.partition.PartitionMixin.max_rows", lambda _: 20)
    texts = [f"text number {i}" for i in range(40)]
    with pytest.raises(InputError, match="20 texts that can be held"):
        TfIdf(3, clusterer="ward").fit(texts, sample=30)
    assert len(TfIdf(3, clusterer="ward").fit(texts, sample=20).labels_) == 40
