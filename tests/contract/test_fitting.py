"""What fit leaves behind, and what it leaves alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import TfIdf
from coterie.errors import InputError
from coterie.methods.base import ClusteringMethod

from .cases import DISTINCT, IS_EMPTY, ROWS, UNSEEN, Case, K, dense, training


def test_fit_returns_self_and_changes_neither_texts_nor_parameters(case: Case, tiny_encoder: Path) -> None:
    model = case.make(tiny_encoder)
    texts = list(ROWS)
    before = model.get_params(deep=False)
    copies = deepcopy(before)
    assert model.fit(texts) is model
    assert texts == ROWS
    after = model.get_params(deep=False)
    assert all(after[name] is value for name, value in before.items())
    assert after == copies


def test_labels(fitted: ClusteringMethod) -> None:
    labels = fitted.labels_
    assert labels.dtype == np.int64
    assert labels.shape == (len(ROWS),)
    np.testing.assert_array_equal(labels == -1, IS_EMPTY)
    assert labels.max() < K
    sizes = np.bincount(labels[~IS_EMPTY], minlength=K)
    assert (np.diff(sizes) <= 0).all(), sizes
    assert (sizes > 0).all(), sizes


def test_confidence_and_distance(fitted: ClusteringMethod) -> None:
    confidence = fitted.confidence_
    assert confidence.dtype == np.float64
    assert confidence.shape == (len(ROWS),)
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert (confidence[IS_EMPTY] == 0).all()
    assert (confidence > 0).any()
    np.testing.assert_array_equal(np.isnan(fitted.center_distance_), IS_EMPTY)
    own = fitted.cluster_centers_[fitted.labels_[~IS_EMPTY]]
    measured = np.linalg.norm(dense(fitted.transform(ROWS))[~IS_EMPTY] - own, axis=1)
    np.testing.assert_allclose(fitted.center_distance_[~IS_EMPTY], measured, atol=1e-4)


def test_centres_are_the_weighted_means_of_their_rows(case: Case, fitted: ClusteringMethod) -> None:
    vectors = dense(fitted.transform(ROWS))
    assert fitted.cluster_centers_.shape == (K, vectors.shape[1])
    if case.centers_are_trained:
        distances = np.linalg.norm(vectors[:, None] - fitted.cluster_centers_[None], axis=2)
        np.testing.assert_array_equal(distances.argmin(axis=1)[~IS_EMPTY], fitted.labels_[~IS_EMPTY])
        return
    for k in range(K):
        mean = vectors[fitted.labels_ == k].mean(axis=0)
        if case.clusterer == "spherical":
            mean = mean / np.linalg.norm(mean)
        np.testing.assert_allclose(fitted.cluster_centers_[k], mean, atol=1e-4)


def test_fit_predict_is_the_labels(case: Case, fitted_fast: ClusteringMethod, tiny_encoder: Path) -> None:
    model = case.make(tiny_encoder)
    labels = model.fit_predict(ROWS, y=np.arange(len(ROWS)))
    np.testing.assert_array_equal(labels, model.labels_)
    # Also: the same seed gives the same clusters, and y is ignored.
    np.testing.assert_array_equal(labels, fitted_fast.labels_)
    np.testing.assert_allclose(model.cluster_centers_, fitted_fast.cluster_centers_, atol=1e-6)


def test_y_is_ignored(method_case: Case, method_fitted: ClusteringMethod, tiny_encoder: Path) -> None:
    y = np.random.default_rng(0).permutation(method_fitted.labels_)
    other = method_case.make(tiny_encoder).fit(ROWS, y)
    np.testing.assert_array_equal(other.labels_, method_fitted.labels_)
    np.testing.assert_allclose(other.confidence_, method_fitted.confidence_, atol=1e-6)


@pytest.mark.parametrize("y", [np.linspace(0, 1, len(ROWS)), ["a"]], ids=["not labels", "too short"])
def test_y_may_be_anything(y: Any) -> None:
    np.testing.assert_array_equal(TfIdf(K).fit(ROWS, y).labels_, TfIdf(K).fit(ROWS).labels_)


def test_what_is_public_is_the_base_classs(method_case: Case) -> None:
    """So what no method can change is tested on one method."""
    for name in ("fit", "check", "fit_predict", "predict", "predict_proba", "assign", "transform", "save_pretrained"):
        assert getattr(method_case.info.load(), name) is getattr(ClusteringMethod, name), name


@pytest.fixture
def _unusual_random_states() -> Iterator[None]:
    """States no fit could leave behind by seeding, so that a seed that stays is seen; put back afterwards."""
    import torch

    kept = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        random.seed(987_654_321)
        np.random.seed(987_654_321)
        torch.manual_seed(987_654_321)
        yield
    random.setstate(kept[0])
    np.random.set_state(kept[1])


@pytest.mark.usefixtures("_unusual_random_states")
def test_global_random_states_are_untouched(case: Case, tiny_encoder: Path, tmp_path: Path) -> None:
    import torch

    import coterie

    before = (random.getstate(), np.random.get_state(), torch.get_rng_state(), torch.get_num_threads())
    model = case.make(tiny_encoder).fit(ROWS)
    model.predict(UNSEEN)
    model.save_pretrained(tmp_path / "model")
    coterie.load(tmp_path / "model").transform(UNSEEN)
    assert random.getstate() == before[0]
    after = np.random.get_state()
    assert after[0] == before[1][0] and after[2:] == before[1][2:]
    np.testing.assert_array_equal(after[1], before[1][1])
    assert torch.equal(torch.get_rng_state(), before[2])
    assert torch.get_num_threads() == before[3]


@pytest.mark.usefixtures("_unusual_random_states")
def test_an_encoder_without_pooler_leaves_the_random_state_alone(
    encoder_case: Case, tiny_encoder: Path, tmp_path: Path
) -> None:
    """Such weights are the rule for masked language models; the missing layer is drawn on loading."""
    import torch
    from transformers import AutoTokenizer, BertModel

    BertModel.from_pretrained(tiny_encoder, add_pooling_layer=False).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(tmp_path)
    before = torch.get_rng_state()
    encoder_case.make(tmp_path).fit(ROWS)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.usefixtures("_unusual_random_states")
def test_global_seeds_change_nothing(method_case: Case, method_fitted: ClusteringMethod, tiny_encoder: Path) -> None:
    import torch

    # Not the states that the first fit began with, if it was made for this test.
    torch.rand(1), np.random.rand(), random.random()
    model = method_case.make(tiny_encoder).fit(ROWS)
    np.testing.assert_array_equal(model.labels_, method_fitted.labels_)
    np.testing.assert_allclose(model.cluster_centers_, method_fitted.cluster_centers_, atol=1e-6)
    # Steps this few and small hardly move the centres, but the losses show dropout and views of another seed.
    np.testing.assert_allclose(model.history_.term("loss"), method_fitted.history_.term("loss"), rtol=1e-4)


def test_without_a_seed_it_fits_all_the_same(method_case: Case, tiny_encoder: Path) -> None:
    labels = method_case.make(tiny_encoder, random_state=None).fit(ROWS).labels_
    np.testing.assert_array_equal(labels == -1, IS_EMPTY)


def test_duplicates_share_a_cluster(fitted: ClusteringMethod) -> None:
    by_text: dict[str | None, set[int]] = {}
    for text, label in zip(ROWS, fitted.labels_, strict=True):
        by_text.setdefault(text, set()).add(int(label))
    assert all(len(labels) == 1 for labels in by_text.values())


def test_it_does_not_matter_where_duplicates_stand(case: Case, tiny_encoder: Path) -> None:
    counts = {text: 1 + 4 * (i % 5 == 0) for i, text in enumerate(DISTINCT)}
    adjacent = [text for text in DISTINCT for _ in range(counts[text])]
    at_the_end = [*DISTINCT, *(text for text in DISTINCT for _ in range(counts[text] - 1))]
    results, centers = [], []
    for texts in (adjacent, at_the_end):
        model = case.make(tiny_encoder).fit(texts)
        results.append(dict(zip(texts, model.labels_.tolist(), strict=True)))
        centers.append(model.cluster_centers_)
        assert any("repeat" in note and f"{len(texts) - len(DISTINCT)}" in note for note in model.notes_)
    assert results[0] == results[1]
    np.testing.assert_allclose(*centers, atol=1e-5)


def test_empty_rows_change_nothing_for_the_others(
    case: Case, fitted_fast: ClusteringMethod, tiny_encoder: Path
) -> None:
    full = [text for text, is_empty in zip(ROWS, IS_EMPTY, strict=True) if not is_empty]
    model = case.make(tiny_encoder).fit(full)
    np.testing.assert_array_equal(model.labels_, fitted_fast.labels_[~IS_EMPTY])
    np.testing.assert_allclose(model.cluster_centers_, fitted_fast.cluster_centers_, atol=1e-6)
    assert any(f"{IS_EMPTY.sum()} of {len(ROWS)}" in note for note in fitted_fast.notes_)
    assert not any("rows are empty" in note for note in model.notes_)


def test_linkage_says_how_often_the_nearest_mean_differs(case: Case, fitted: ClusteringMethod) -> None:
    if case.batch_decides:
        assert 0 < fitted.predict_agreement_ <= 1  # with the assignments inside training batches
        return
    if not case.is_linkage:
        assert "predict_agreement_" not in vars(fitted)
        return
    np.testing.assert_array_equal(fitted.predict(ROWS), fitted.labels_)
    rows = dense(fitted.transform(DISTINCT))
    nearest = np.linalg.norm(rows[:, None] - fitted.cluster_centers_[None], axis=2).argmin(axis=1)
    parts = vars(fitted).get("parts_")
    if parts is not None:
        nearest = parts.scores(rows).argmax(axis=1)
    cluster_of = dict(zip(DISTINCT, nearest.tolist(), strict=True))
    rows_of_texts = [(cluster_of[text], label) for text, label in zip(ROWS, fitted.labels_, strict=True) if label >= 0]
    share = np.mean([one == other for one, other in rows_of_texts])
    assert fitted.predict_agreement_ == pytest.approx(share)
    outcome = "agrees on all of them" if share == 1 else f"agrees on {share:.1%}"
    how = "nearest" if parts is None else "parts"
    assert any(how in note and outcome in note for note in fitted.notes_)


def test_history(case: Case, fitted_fast: ClusteringMethod) -> None:
    steps = fitted_fast.history_.steps
    if not case.info.trains_encoder and not case.trains_network:
        assert steps == []
        return
    if case.trains_network:
        assert steps
    else:
        assert len(steps) == case.fast_training.max_steps
    for record in steps:
        terms = [value for name, value in record.items() if name not in {"stage", "epoch", "step"}]
        assert terms and np.isfinite(terms).all()
    assert len(fitted_fast.history_.term("loss")) == len(steps)


def test_training_reaches_every_parameter_of_the_encoder(trained_case: Case, tiny_encoder: Path) -> None:
    from coterie.encoders.transformer import TransformerEncoder

    before = dict(TransformerEncoder.load(tiny_encoder).named_parameters())
    model = trained_case.make(tiny_encoder, training=training(learning_rate=1e-2)).fit(DISTINCT)
    for name, parameter in model.encoder_.named_parameters():  # type: ignore[attr-defined]
        if name.startswith("projection."):
            continue  # not the encoder's own: a method put it behind
        # Adding a constant to all keys leaves attention as it is: their bias has no gradient by its nature.
        if not name.endswith("key.bias"):
            assert parameter.isfinite().all()
            assert (parameter != before[name]).any() == parameter.requires_grad, name


@pytest.mark.parametrize(("batch_size", "k"), [(2, 2), (64, 3), (None, 2)])
def test_few_texts(method_case: Case, tiny_encoder: Path, batch_size: int | None, k: int) -> None:
    """Three texts: fewer than a batch, or batches with one text left over."""
    if not method_case.info.trains_encoder and batch_size is None:
        pytest.skip("has no batches of texts")
    trains = method_case.info.trains_encoder
    settings = {"training": training(batch_size=batch_size, max_steps=3)} if trains else {}
    model = method_case.make(tiny_encoder, n_clusters=k, **settings).fit(DISTINCT[:3])
    # A head does not separate three texts within three steps; centres do.
    used = set(model.labels_.tolist())
    assert used <= set(range(k)) if method_case.head_decides else used == set(range(k))
    assert np.isfinite(model.history_.term("loss")).all()


def test_texts_with_equal_vectors_may_leave_clusters_empty(case: Case, tiny_encoder: Path) -> None:
    """Distinct texts that no encoder here tells apart: an honest note instead of a crash."""
    texts = ["late parcel", "LATE parcel", "Late Parcel", "late PARCEL", "lost password"]
    model = case.make(tiny_encoder).fit(texts)
    n_used = len(set(model.labels_.tolist()))
    assert any("stayed empty" in note for note in model.notes_) == (n_used < K)
    assert np.isfinite(model.cluster_centers_).all()
    assert ((model.confidence_ >= 0) & (model.confidence_ <= 1)).all()
    if not case.is_linkage:
        np.testing.assert_array_equal(model.predict(texts), model.labels_)


def test_refitting_forgets_the_first_fit(case: Case, fitted_fast: ClusteringMethod, tiny_encoder: Path) -> None:
    other = {"clusterer": "kmeans" if case.is_linkage else "ward"} if case.clusterer else {}
    fresh = case.make(tiny_encoder, **other).fit(UNSEEN)
    again = deepcopy(fitted_fast).set_params(**other).fit(UNSEEN)
    np.testing.assert_array_equal(again.labels_, fresh.labels_)
    np.testing.assert_allclose(again.cluster_centers_, fresh.cluster_centers_, atol=1e-6)
    assert again.notes_ == fresh.notes_
    assert len(again.history_.steps) == len(fresh.history_.steps)
    assert set(vars(again)) == set(vars(fresh))


def test_a_refused_fit_leaves_the_model_as_it_was(method_fitted: ClusteringMethod) -> None:
    model = deepcopy(method_fitted)
    labels, notes = model.labels_.copy(), model.notes_
    with pytest.raises(InputError):
        model.fit(["one text"])
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.notes_ == notes
    np.testing.assert_array_equal(model.predict(ROWS) == -1, IS_EMPTY)
