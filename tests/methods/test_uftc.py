"""UFTC as an estimator, on a tiny encoder: stages, masking, targets, the trained centres' answer, interruption."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from reference import uftc_oracle as oracle
from torch import Tensor

import coterie
from coterie import UFTC, TrainingConfig
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.language.masked_training import MaskedWords
from coterie.methods.uftc import UFTCObjective
from coterie.training.objective import Batch
from coterie.training.steps import Steps
from coterie.training.trainer import Trainer

TEXTS, TOPICS = topic_texts(30)
UNSEEN = [*topic_texts(20, seed=9)[0], "parcel", "xyzzy", "where is my refund " * 20, "Äpfel 日本語 🙂"]
MASK = 4


def _method(folder: Path, *, n_clusters: int = 3, training: dict[str, Any] | None = None, **settings: Any) -> UFTC:
    chosen = {
        "batch_size": 10,
        "max_epochs": 4,
        "max_steps": None,
        "precision": "float32",
        "learning_rate": 1e-3,
        "head_learning_rate": 1e-2,
        "check_every": 0,
        **(training or {}),
    }
    # A third of the tokens: no batch is left without a masked one.
    settings = {"mask_ratio": 0.3, "normalize": True, **settings}
    return UFTC(n_clusters, encoder=str(folder), device="cpu", training=TrainingConfig(**chosen), **settings)


@pytest.fixture
def with_head(tiny_encoder: Path, tmp_path: Path) -> Path:
    """The folder of a model with a masked-language head."""
    from transformers import BertConfig, BertForMaskedLM

    folder = tmp_path / "with_head"
    config = BertConfig(**json.loads((tiny_encoder / "config.json").read_text()))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertForMaskedLM(config).save_pretrained(folder)
    for file in tiny_encoder.glob("tokenizer*"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture
def without_mask_token(tiny_encoder: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "maskless"
    encoder = TransformerEncoder.load(tiny_encoder)
    encoder.tokenizer.mask_token = None
    encoder.save(folder)
    return folder


def _spy_loss(monkeypatch: pytest.MonkeyPatch) -> list[tuple[UFTCObjective, Batch, Tensor]]:
    """Every batch of the joint stage, with the targets of that moment."""
    seen: list[tuple[UFTCObjective, Batch, Tensor]] = []
    real = UFTCObjective.loss

    def spy(objective: UFTCObjective, batch: Batch) -> Any:
        seen.append((objective, batch, objective.targets.clone()))
        return real(objective, batch)

    monkeypatch.setattr(UFTCObjective, "loss", spy)
    return seen


# --- Stages ---


def test_a_head_is_trained_where_the_model_has_none(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder).fit(TEXTS)
    assert list(model.history_.stop_reasons) == ["masked_head", "joint"]
    assert any("no masked-language head: one is trained for 1 epoch" in note for note in model.notes_)
    stages = [record["stage"] for record in model.history_.steps]
    assert stages == ["masked_head"] * 3 + ["joint"] * 9  # the head's epoch is one of the four
    for record in model.history_.steps:
        terms = {"language"} if record["stage"] == "masked_head" else {"language", "cluster"}
        assert set(record) - {"stage", "epoch", "step", "loss"} == terms
        assert record["loss"] == pytest.approx(sum(record[name] for name in terms), rel=1e-5)


def test_a_model_with_a_head_keeps_it(with_head: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import load_file

    heads: list[dict[str, Tensor]] = []
    real = MaskedWords.__init__

    def spy(masked: MaskedWords, encoder: Any, head: Any, ratio: float) -> None:
        heads.append({name: tensor.clone() for name, tensor in head.state_dict().items()})
        real(masked, encoder, head, ratio)

    monkeypatch.setattr(MaskedWords, "__init__", spy)
    model = _method(with_head).fit(TEXTS)
    assert list(model.history_.stop_reasons) == ["joint"]
    assert len(model.history_.steps) == 9
    assert not any("no masked-language head" in note for note in model.notes_)
    stored = load_file(with_head / "model.safetensors")["cls.predictions.transform.dense.weight"]
    assert torch.equal(heads[0]["dense.weight"], stored)


def test_no_epochs_for_the_head_means_no_stage(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, head_epochs=0, training={"max_epochs": 1}).fit(TEXTS)
    assert list(model.history_.stop_reasons) == ["joint"]
    assert "language" in model.history_.steps[0]


def test_the_encoder_is_frozen_while_the_head_learns(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Word embeddings included, though the head is tied to them; only the joint stage moves the encoder."""
    snapshots: dict[str, list[Tensor]] = {}
    real = Trainer._run_stage

    def spy(trainer: Trainer, stage: Any, *rest: Any) -> None:
        snapshots[f"before {stage.name}"] = [each.detach().clone() for each in trainer.encoder.parameters()]
        heads = [each.detach().clone() for each in stage.objective.masked.head.parameters()]
        real(trainer, stage, *rest)
        snapshots[f"after {stage.name}"] = [each.detach().clone() for each in trainer.encoder.parameters()]
        moved = [not torch.equal(a, b) for a, b in zip(heads, stage.objective.masked.head.parameters(), strict=True)]
        assert all(moved)

    monkeypatch.setattr(Trainer, "_run_stage", spy)
    model = _method(tiny_encoder).fit(TEXTS)
    words = model.encoder_.model.get_input_embeddings().weight  # type: ignore[operator]
    pairs = zip(snapshots["before masked_head"], snapshots["after masked_head"], strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert any(torch.equal(each, words) for each in snapshots["after joint"])
    assert not any(torch.equal(each, words) for each in snapshots["before joint"])
    assert model.history_.encoder_change > 1e-5


def test_training_moves_both_losses(tiny_encoder: Path) -> None:
    training = {"max_epochs": 40, "batch_size": 30, "learning_rate": 3e-3}
    model = _method(tiny_encoder, training=training).fit(TEXTS)
    language = model.history_.term("language")
    assert np.mean(language[-4:]) < np.mean(language[:4]) - 0.5
    # Assignments come nearer to their targets, and grow surer.
    start = _method(tiny_encoder, training={"max_epochs": 1, "learning_rate": 1e-12}).fit(TEXTS)
    assert model.predict_proba(TEXTS).max(axis=1).mean() > start.predict_proba(TEXTS).max(axis=1).mean() + 0.1


def test_the_same_seed_gives_the_same_model(tiny_encoder: Path) -> None:
    first, second, other = (_method(tiny_encoder, random_state=seed).fit(TEXTS) for seed in (3, 3, 4))
    assert np.array_equal(first.cluster_centers_, second.cluster_centers_)
    assert first.history_.steps == second.history_.steps
    assert first.history_.steps != other.history_.steps


# --- Masking ---


def test_one_masked_pass_serves_both_losses(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _spy_loss(monkeypatch)
    training = {"max_epochs": 20, "learning_rate": 1e-12}
    _method(tiny_encoder, head_epochs=0, training=training).fit([*TEXTS, "[MASK] 日本 parcel"])
    changed = ordinary = 0
    for _, batch, _ in seen:
        (view,) = batch.token_views
        different = view.ids != view.original_ids
        special = view.original_ids < 5  # padding, unknown, both ends, mask
        assert (view.ids[different] == MASK).all()
        assert not different[special].any()
        changed, ordinary = changed + int(different.sum()), ordinary + int((~special).sum())
    assert changed / ordinary == pytest.approx(0.3, abs=0.05)
    # The sentence embedding is of the masked text.
    _, batch, _ = seen[0]
    (view,) = batch.token_views
    weights = view.mask.unsqueeze(-1)
    pooled = (view.states * weights).sum(dim=1) / weights.sum(dim=1)
    torch.testing.assert_close(torch.nn.functional.normalize(pooled, dim=-1), batch.embeddings[0])


def test_without_the_masked_loss_nothing_is_masked(
    without_mask_token: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = _spy_loss(monkeypatch)
    for folder in (tiny_encoder, without_mask_token):
        model = _method(folder, masked_loss=False).fit(TEXTS)
        assert list(model.history_.stop_reasons) == ["joint"]
        assert len(model.history_.steps) == 9
        assert all(set(record) == {"stage", "epoch", "step", "loss", "cluster"} for record in model.history_.steps)
        assert np.array_equal(model.predict(TEXTS), model.labels_)
    assert len(seen) == 18
    for objective, batch, _ in seen:
        assert objective.masked is None
        assert all(torch.equal(view.ids, view.original_ids) for view in batch.token_views)


def test_an_encoder_without_a_mask_token_is_refused_by_name(without_mask_token: Path) -> None:
    with pytest.raises(SettingError, match=r"maskless has no mask token"):
        _method(without_mask_token).fit(TEXTS)


def test_short_texts_that_are_seldom_masked_train_all_the_same(tiny_encoder: Path) -> None:
    training = {"batch_size": 2, "max_epochs": 3}
    model = _method(tiny_encoder, mask_ratio=0.01, training=training).fit(["parcel", "refund", "login", "money"])
    assert 0.0 in model.history_.term("language")
    assert np.isfinite(model.cluster_centers_).all()


# --- Targets ---


def test_targets_are_of_the_unmasked_corpus_once_an_epoch(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Tensor, Tensor, Tensor]] = []
    real = UFTCObjective.refresh

    def spy(objective: UFTCObjective, embed_corpus: Any) -> None:
        asked: list[Tensor] = []

        def embed() -> Tensor:
            asked.append(embed_corpus())
            return asked[-1]

        real(objective, embed)
        assert len(asked) == 1
        made.append((asked[0].clone(), objective.centers.detach().clone(), objective.targets.clone()))

    monkeypatch.setattr(UFTCObjective, "refresh", spy)
    seen = _spy_loss(monkeypatch)
    repeated = [*TEXTS, *TEXTS[:6], *TEXTS[:2]]
    frozen = TransformerEncoder.load(tiny_encoder, normalize=True).encode(TEXTS)
    _method(tiny_encoder).fit(repeated)
    assert len(made) == 3 and len(seen) == 9
    counts = np.array([3, 3, 2, 2, 2, 2] + [1] * 24)
    # Before the first step of the joint stage the encoder is as it was loaded, in evaluation mode and unmasked.
    np.testing.assert_allclose(made[0][0].numpy(), frozen, atol=1e-5)
    for embeddings, centers, targets in made:
        q = oracle.student_t(6.0 * embeddings.numpy(), centers.numpy(), 10.0)
        np.testing.assert_allclose(targets.numpy(), oracle.target_distribution(q, counts), rtol=1e-3, atol=1e-6)
        assert not targets.requires_grad
    # All steps of an epoch look at the same targets, those of the next at others.
    for i, (_, batch, targets) in enumerate(seen):
        assert torch.equal(targets, made[i // 3][2])
        assert batch.weights.tolist() == counts[batch.rows.numpy()].tolist()
    assert not torch.equal(made[0][2], made[1][2])


# --- The answer ---


@pytest.mark.parametrize("normalize", [True, False])
def test_labels_are_the_nearest_trained_centre(tiny_encoder: Path, normalize: bool) -> None:
    training = {"head_learning_rate": 0.1}  # centres that go their own way
    model = _method(tiny_encoder, normalize=normalize, training=training).fit(TEXTS)
    radius = 6.0 if normalize else 1.0
    features = model.transform(TEXTS)
    q = oracle.student_t(radius * features, radius * model.cluster_centers_, 10.0)
    assert oracle.labels(q) == model.labels_.tolist()  # Eq. 4
    np.testing.assert_allclose(model.predict_proba(TEXTS), q, rtol=1e-4)
    assert np.array_equal(model.head_labels_, model.labels_)
    assert np.array_equal(model.predict(TEXTS), model.labels_)
    means = [features[model.labels_ == label].mean(axis=0) for label in np.unique(model.labels_)]
    assert np.abs(means - model.cluster_centers_[: len(means)]).max() > 0.01  # they are not the clusters' means
    sizes = np.bincount(model.labels_, minlength=3)
    assert sizes.tolist() == sorted(sizes, reverse=True)


def test_the_centres_are_those_of_training(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _spy_loss(monkeypatch)
    model = _method(tiny_encoder).fit(TEXTS)
    trained = seen[-1][0].centers.detach().numpy() / 6.0
    gaps = np.abs(model.cluster_centers_[:, None] - trained[None]).max(axis=2)
    assert gaps.min(axis=1).max() < 1e-6 and len(set(gaps.argmin(axis=1).tolist())) == 3


def test_an_answer_does_not_depend_on_company(tiny_encoder: Path, tmp_path: Path) -> None:
    model = _method(tiny_encoder).fit(TEXTS)
    labels, together = model.predict(UNSEEN), model.predict_proba(UNSEEN)
    order = np.random.default_rng(0).permutation(len(UNSEEN))
    assert np.array_equal(model.predict([UNSEEN[i] for i in order]), labels[order])
    assert [model.predict([text]).item() for text in UNSEEN] == labels.tolist()
    model.save_pretrained(tmp_path / "model")
    again = coterie.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(again.predict_proba(UNSEEN), together, rtol=1e-6)
    assert np.array_equal(again.predict(TEXTS), model.labels_)


def test_cls_pooling(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, pooling="cls").fit(TEXTS)
    assert model.encoder_.settings.pooling == "cls"
    tokens = model.encoder_.tokenizer(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        state = model.encoder_.model(**tokens).last_hidden_state[0, 0]
    np.testing.assert_allclose(
        model.transform(TEXTS[:1])[0], torch.nn.functional.normalize(state, dim=0).numpy(), atol=1e-5
    )
    assert np.array_equal(model.predict(TEXTS), model.labels_)


def test_the_stop_watches_the_assignments_of_eq_4(tiny_encoder: Path) -> None:
    training = {"check_every": 1, "patience": 1, "max_epochs": 9, "learning_rate": 1e-12, "head_learning_rate": 1e-12}
    model = _method(tiny_encoder, training=training).fit(TEXTS)
    # Nothing moves: the first look has nothing to compare with, the second is calm.
    assert [(check["stage"], check["label_change"]) for check in model.history_.checks] == [("joint", 1), ("joint", 0)]
    assert model.history_.stop_reasons == {"masked_head": "cap", "joint": "converged"}


# --- Interruption and settings ---


def _interrupt(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    steps: list[int] = []
    real = Steps.take

    def unlucky(*arguments: Any) -> Any:
        steps.append(1)
        if len(steps) == step:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(Steps, "take", unlucky)


def test_interrupted_while_the_head_learns_it_is_k_means(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(monkeypatch, 2)
    model = _method(tiny_encoder).fit(TEXTS)
    assert model.history_.stop_reasons == {"masked_head": "interrupted"}
    assert any("interrupted after 1 steps" in note for note in model.notes_)
    assert model.history_.encoder_change == 0
    assert np.array_equal(model.labels_, model.initial_labels_)
    assert np.array_equal(model.predict(TEXTS), model.labels_)
    assert all(each.requires_grad for name, each in model.encoder_.named_parameters() if ".pooler." not in name)


def test_interrupted_later_it_is_the_model_so_far(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(monkeypatch, 6)
    model = _method(tiny_encoder).fit(TEXTS)
    assert model.history_.stop_reasons == {"masked_head": "cap", "joint": "interrupted"}
    assert len(model.history_.steps) == 5
    assert np.array_equal(model.predict(TEXTS), model.labels_)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.0),
        ("radius", -1.0),
        ("masked_loss", "yes"),
        ("mask_ratio", 0.0),
        ("mask_ratio", 1.0),
        ("head_epochs", -1),
        ("head_epochs", 0.5),
        ("n_clusters", 1),
    ],
)
def test_bad_settings_are_named(tiny_encoder: Path, name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"{name}="):
        _method(tiny_encoder).set_params(**{name: value}).fit(TEXTS)
