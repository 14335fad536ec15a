"""SCCL as an estimator, on a tiny encoder: its stages, its several label arrays, its settings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts

import coterie.methods.trained as training_module
import coterie.training.trainer as trainer_module
from coterie import SCCL, FrozenEncoder, TrainingConfig
from coterie.clustering.assignment import align_labels, squared_distances
from coterie.clustering.partition import Partition
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.methods.sccl import VARIANTS
from coterie.training.objective import Batch
from coterie.training.steps import Steps
from coterie.training.stopping import LabelWatch
from coterie.training.views import Views

TEXTS, _ = topic_texts(30)
FORMS = pytest.mark.parametrize(
    ("variant", "augmentation"), [(v, a) for v in VARIANTS for a in ("word_deletion", "virtual")]
)


def _method(folder: Path, *, n_clusters: int = 3, training: dict[str, Any] | None = None, **settings: Any) -> SCCL:
    # Rates high enough for a few steps to move texts from cluster to cluster.
    chosen = {"batch_size": 10, "max_epochs": 2, "precision": "float32", "learning_rate": 3e-3, **(training or {})}
    return SCCL(n_clusters, encoder=str(folder), device="cpu", training=TrainingConfig(**chosen), **settings)


def _same_partition(first: np.ndarray, second: np.ndarray) -> bool:
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _spy_kmeans(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Record how k-means is called (but not by the label watch), and what comes back."""
    calls: list[dict[str, Any]] = []
    real = training_module.kmeans

    def spy(features: Any, n_clusters: int, **options: Any) -> Any:
        result = real(features, n_clusters, **options)
        calls.append({"features": np.array(features), "result": result, **options})
        return result

    monkeypatch.setattr(training_module, "kmeans", spy)
    return calls


# --- Training ---


@FORMS
def test_every_form_trains_and_keeps_its_terms(tiny_encoder: Path, variant: str, augmentation: str) -> None:
    model = _method(tiny_encoder, variant=variant, augmentation=augmentation).fit(TEXTS)
    terms = {
        "instance": [{"instance"}],
        "cluster": [{"cluster"}],
        "sequential": [{"instance"}, {"cluster"}],
    }.get(variant, [{"instance", "cluster"}])
    stages = list(model.history_.stop_reasons)
    assert stages == {"instance": ["instance"], "cluster": ["cluster"], "sequential": ["instance", "cluster"]}.get(
        variant, ["sccl"]
    )
    assert len(model.history_.steps) == 6
    for record in model.history_.steps:
        named = set(record) - {"stage", "epoch", "step", "loss"}
        assert named == terms[stages.index(record["stage"])]
        assert all(np.isfinite(record[name]) for name in (*named, "loss"))
    assert model.labels_.shape == (30,)
    assert np.array_equal(model.predict(TEXTS), model.labels_)


@FORMS
def test_gradient_reaches_every_trainable_parameter(tiny_encoder: Path, variant: str, augmentation: str) -> None:
    method = _method(tiny_encoder, variant=variant, augmentation=augmentation)
    method.encoder_ = encoder = TransformerEncoder.load(tiny_encoder)
    tokens = encoder.tokenize(TEXTS)
    views = Views(encoder, TEXTS, tokens, method._augmenters(), seed=0)
    centers = encoder.encode_tokens(tokens)[:3]
    encoder.train()
    start: Any = SimpleNamespace(
        centers=centers,
        generator=torch.Generator().manual_seed(0),
        recluster=lambda embeddings: SimpleNamespace(centers=embeddings[:3].numpy()),
    )
    for stage in method._stages(start):
        objective = stage.objective
        encoder.zero_grad(set_to_none=True)
        views.resample(objective.views, 0)
        rows = np.arange(30)
        flat = views.rows(objective.views, rows)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            sentences, _ = encoder.encode_rows(views.tokens, flat, torch.float32, 10_000)
        batch = Batch(sentences.split(30), torch.arange(30), torch.ones(30))
        objective.loss(batch).total.backward()
        named = [*encoder.named_parameters(prefix="encoder"), *objective.named_parameters(prefix="objective")]
        assert any(name.startswith("objective") for name, _ in named)
        for name, parameter in named:
            if ".pooler." in name:
                assert not parameter.requires_grad and parameter.grad is None
                continue
            assert parameter.requires_grad, name
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name
            # Attention does not see a bias that is the same for all keys: its gradient is zero by nature.
            if not name.endswith("attention.self.key.bias"):
                assert parameter.grad.abs().max() > 1e-8, name


def test_the_same_seed_gives_the_same_model(tiny_encoder: Path) -> None:
    first, second = (_method(tiny_encoder, random_state=3).fit(TEXTS) for _ in range(2))
    assert np.array_equal(first.labels_, second.labels_)
    assert np.array_equal(first.cluster_centers_, second.cluster_centers_)
    assert first.history_.steps == second.history_.steps
    other = _method(tiny_encoder, random_state=4).fit(TEXTS)
    assert first.history_.steps != other.history_.steps


def test_a_repeated_text_is_one_text_with_a_weight(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[np.ndarray] = []

    class Spying(trainer_module.Trainer):
        def __init__(self, encoder: Any, views: Any, tokens: Any, weights: Any, *rest: Any) -> None:
            given.append(weights)
            assert len(tokens) == len(weights) == 30
            super().__init__(encoder, views, tokens, weights, *rest)

    monkeypatch.setattr(trainer_module, "Trainer", Spying)
    calls = _spy_kmeans(monkeypatch)
    repeated = [*TEXTS, *TEXTS[:5], TEXTS[0]]
    model = _method(tiny_encoder).fit(repeated)
    expected = [3, 2, 2, 2, 2] + [1] * 25
    assert given[0].tolist() == expected
    assert len(calls) == 2  # at the start and at the end
    assert all(call["weights"].tolist() == expected for call in calls)
    assert np.array_equal(model.labels_[30:], model.labels_[[0, 1, 2, 3, 4, 0]])


# --- SCCL-Seq ---


def test_sequential_has_two_halves_with_centres_placed_anew(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _spy_kmeans(monkeypatch)
    training = {"max_epochs": 4, "check_every": 0}
    texts = [*TEXTS, *TEXTS[:5]]
    model = _method(tiny_encoder, variant="sequential", final_kmeans="continued", training=training).fit(texts)
    assert [record["stage"] for record in model.history_.steps] == ["instance"] * 6 + ["cluster"] * 6
    start, again = calls
    # On what Instance-CL has learned, not on the frozen embeddings; repeated texts weigh what they should.
    assert not np.allclose(again["features"], start["features"], atol=1e-3)
    assert again["weights"].tolist() == [2] * 5 + [1] * 25
    # Six steps at 5e-4 do not lead far from there.
    gaps = np.abs(model.head_centers_[:, None] - again["result"].centers[None]).max(axis=2)
    assert gaps.min(axis=0).max() < 0.05
    assert np.abs(model.head_centers_[:, None] - start["result"].centers[None]).max(axis=2).min() > 0.05


# --- The several answers ---


def test_head_labels_are_the_head_s_own_answer(tiny_encoder: Path) -> None:
    # A head that learns fast goes its own way.
    model = _method(tiny_encoder, training={"head_learning_rate": 2.0, "max_epochs": 4}).fit(TEXTS)
    assert model.head_centers_ is not None
    assert model.head_centers_.shape == model.cluster_centers_.shape
    answer = squared_distances(model.transform(TEXTS), model.head_centers_).argmin(axis=1)  # argmax of Eq. 3
    assert _same_partition(model.head_labels_, answer)
    assert np.array_equal(model.head_labels_, align_labels(answer, model.labels_, 3, np.ones(30)))
    assert not _same_partition(model.head_labels_, model.labels_)


def test_head_centres_stand_in_the_order_of_head_labels(tiny_encoder: Path) -> None:
    for seed in range(4):
        model = _method(tiny_encoder, random_state=seed).fit(TEXTS)
        answer = squared_distances(model.transform(TEXTS), model.head_centers_).argmin(axis=1)
        assert np.array_equal(model.head_labels_, answer), f"seed {seed}"


def test_instance_alone_has_no_head(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, variant="instance").fit(TEXTS)
    assert getattr(model, "head_centers_", None) is None
    assert np.array_equal(model.head_labels_, model.labels_)


def test_a_fit_without_a_head_forgets_the_head_of_the_fit_before(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder).fit(TEXTS)
    model.set_params(variant="instance").fit(TEXTS)
    assert getattr(model, "head_centers_", None) is None


def test_labels_are_kmeans_on_the_final_embeddings(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _spy_kmeans(monkeypatch)
    model = _method(tiny_encoder, final_kmeans="fresh").fit(TEXTS)
    assert np.array_equal(model.kmeans_labels_, model.labels_)
    assert _same_partition(model.labels_, calls[-1]["result"].labels)
    np.testing.assert_allclose(calls[-1]["features"], model.transform(TEXTS), atol=1e-6)
    assert np.bincount(model.labels_).tolist() == sorted(np.bincount(model.labels_), reverse=True)


@pytest.mark.parametrize("seed", [0, 5])
def test_initial_labels_are_the_frozen_baseline(tiny_encoder: Path, seed: int) -> None:
    texts = [*TEXTS, *TEXTS[:4]]
    model = _method(tiny_encoder, random_state=seed).fit(texts)
    frozen = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu", random_state=seed).fit(texts)
    assert _same_partition(model.initial_labels_, frozen.labels_)
    assert not _same_partition(model.initial_labels_, model.labels_)


def test_the_last_kmeans_is_fresh_continued_or_the_better_of_both(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[tuple[np.ndarray, Partition]] = []
    real = LabelWatch.partition

    def partition(watch: LabelWatch, embeddings: np.ndarray) -> Partition:
        followed.append((watch.centers.copy(), real(watch, embeddings)))
        return followed[-1][1]

    monkeypatch.setattr(LabelWatch, "partition", partition)
    training = {"max_epochs": 3, "check_every": 1, "patience": 1, "tolerance": 0}
    for final in ("fresh", "continued", "best"):
        calls = _spy_kmeans(monkeypatch)
        followed.clear()
        model = _method(tiny_encoder, final_kmeans=final, training=training).fit(TEXTS)
        fresh, looks = calls[1:], followed
        assert len(fresh) == (final != "continued")
        assert len(looks) == 2 + (final != "fresh")  # two looks between three epochs
        assert not any(call.get("init") is not None for call in calls)
        candidates = [call["result"] for call in fresh] + [look[1] for look in looks[2:]]
        best = min(candidates, key=lambda candidate: candidate.inertia)
        assert _same_partition(model.labels_, best.labels)
        if final == "continued":
            # The centres were followed through training: no longer those of the start.
            assert np.abs(looks[2][0] - calls[0]["result"].centers).max() > 1e-3


# --- Interruption and settings ---


def test_an_interruption_leaves_a_fitted_model(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    real = Steps.take

    def third_time_unlucky(*arguments: Any) -> Any:
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(Steps, "take", third_time_unlucky)
    model = _method(tiny_encoder).fit(TEXTS)
    assert any("interrupted after 2 steps" in note for note in model.notes_)
    assert np.array_equal(model.predict(TEXTS), model.labels_)


def test_cut_texts_are_noted(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, max_length=5).fit([*TEXTS[:9], "parcel late"])
    assert any("9 of 10 distinct texts had more than 5 tokens" in note for note in model.notes_)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("variant", "both"),
        ("augmentation", "no such"),
        ("augmentation_ratio", 1.0),
        ("augmentation_ratio", 0.0),
        ("final_kmeans", "none"),
        ("temperature", 0.0),
        ("temperature", float("nan")),
        ("alpha", -1.0),
        ("eta", -0.1),
        ("eta", float("nan")),
        ("radius", 0.0),
        ("n_clusters", 1),
        ("pooling", "sum"),
        ("device", "toaster"),
    ],
)
def test_bad_settings_are_named(tiny_encoder: Path, name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"{name}="):
        _method(tiny_encoder).set_params(**{name: value}).fit(TEXTS)


def test_bad_training_settings_are_named(tiny_encoder: Path) -> None:
    with pytest.raises(SettingError, match="training.batch_size=1"):
        _method(tiny_encoder, training={"batch_size": 1}).fit(TEXTS)


def test_given_embeddings_are_refused_with_the_way_out(tiny_encoder: Path) -> None:
    with pytest.raises(SettingError, match="FrozenEncoder"):
        _method(tiny_encoder).fit(TEXTS, embeddings=np.zeros((30, 4)))


def test_a_run_that_diverges_says_so(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import coterie.methods.sccl

    monkeypatch.setattr(coterie.methods.sccl, "nt_xent", lambda first, *_: first.sum() * float("nan"))
    with pytest.raises(SettingError, match=r"diverged.*learning_rate"):
        _method(tiny_encoder).fit(TEXTS[:20])


def test_augmentations_that_change_little_are_noted() -> None:
    model = SCCL(2)
    model.notes_ = ()
    model._note_unchanged(SimpleNamespace(unchanged={"augmented_1": 1.0, "augmented_2": 0.6, "other": 0.5}))  # type: ignore[arg-type]
    assert model.notes_ == (
        "the augmentation changed no text at all: view augmented_1 differs by dropout alone",
        "the augmentation left 60% of the texts unchanged (view augmented_2), since they are short",
    )
