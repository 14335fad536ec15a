"""RSTC: losses against the float64 oracle, pseudo-labels by transport, stages, and the head's answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from reference import rstc_oracle as oracle
from reference.aecl_oracle import feed_forward
from torch import Tensor, nn

import coterie
from coterie import RSTC, TrainingConfig
from coterie.errors import SettingError
from coterie.methods.baselines.rstc import ClusterHead, RSTCObjective, assignment_loss
from coterie.methods.networks import Projector
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch
from coterie.training.steps import Steps

TEXTS, TOPICS = topic_texts(60)
FEW = TEXTS[:30]
UNSEEN = [*topic_texts(20, seed=9)[0], "parcel", "xyzzy", "where is my refund " * 20, "Äpfel 日本語 🙂"]
STAGES = ("contrast", "kmeans", "transport")
N, DIMENSION, CLUSTERS = 6, 5, 3
ROWS = np.array([9, 2, 5, 0, 7, 3])
LABELS = np.array([2, 1, 0, 2, 1, 0, 1, 1, 2, 2])
COUNTS = np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0])


# --- The objective ---


def _objective(stage: str, n_texts: int = 10, **settings: Any) -> RSTCObjective:
    """In float64 and evaluation mode: without dropout."""
    generator = torch.Generator().manual_seed(1)
    projector, head = Projector(DIMENSION, generator, 4), ClusterHead(DIMENSION, CLUSTERS, 2.5, generator)
    labels = nn.Module()
    labels.register_buffer("labels", torch.from_numpy(LABELS.copy()))
    start: Any = SimpleNamespace(counts=np.ones(n_texts, dtype=np.int64))
    method = RSTC(CLUSTERS, eta=3.0, temperature=0.7, **settings)
    return RSTCObjective(stage, projector, head, labels, method, start).double().eval()


def _views() -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(N, DIMENSION, generator=generator, dtype=torch.float64) for _ in range(2)]


def _layers(network: nn.Module) -> list[tuple[np.ndarray, np.ndarray]]:
    found = [module for module in network.modules() if isinstance(module, nn.Linear)]
    return [(each.weight.detach().numpy(), each.bias.detach().numpy()) for each in found]


def _expected(objective: RSTCObjective, views: list[Tensor]) -> dict[str, float]:
    arrays = [view.detach().numpy() for view in views]
    z = [feed_forward(each, _layers(objective.projector)) for each in arrays]
    instance = oracle.contrast(z[0], z[1], 0.7, COUNTS)
    if objective.stage == "contrast":
        return {"loss": 3 * instance, "instance": instance}
    logits = [feed_forward(2.5 * each, _layers(objective.head)) for each in arrays]
    cluster = oracle.assignment_loss(logits[0], logits[1], LABELS[ROWS], COUNTS)
    return {"loss": cluster + 3 * instance, "instance": instance, "cluster": cluster}


def _batch(views: list[Tensor]) -> Batch:
    return Batch(tuple(views), torch.from_numpy(ROWS), torch.from_numpy(COUNTS))


@pytest.mark.parametrize("stage", STAGES)
def test_losses_are_those_of_the_oracle(stage: str) -> None:
    objective, views = _objective(stage), _views()
    terms = {name: value.item() for name, value in objective.loss(_batch(views)).named.items()}
    assert terms == pytest.approx(_expected(objective, views), rel=1e-9)


@pytest.mark.parametrize("stage", STAGES)
def test_gradients_are_those_of_the_oracle(stage: str) -> None:
    """Along a random direction in both views and in each network."""
    objective, views = _objective(stage), _views()
    for view in views:
        view.requires_grad_()
    parts = {"views": views, "projector": [*objective.projector.parameters()], "head": [*objective.head.parameters()]}
    generator = torch.Generator().manual_seed(5)
    for name, leaves in parts.items():
        gradients = torch.autograd.grad(objective.loss(_batch(views)).total, leaves, allow_unused=True)
        directions = [torch.randn(leaf.shape, generator=generator, dtype=torch.float64) for leaf in leaves]
        slope = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True) if g is not None)
        ends = []
        for step in (1e-6, -1e-6):
            for sign in (1, -1):
                with torch.no_grad():
                    for leaf, direction in zip(leaves, directions, strict=True):
                        leaf.add_(sign * step * direction)
                if sign == 1:
                    ends.append(_expected(objective, views)["loss"])
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-6), name
        assert (slope == 0) == (stage == "contrast" and name == "head")


def test_the_assignment_loss_in_float32_is_finite_for_a_sure_head() -> None:
    logits = torch.tensor([[300.0, 0.0], [0.0, 300.0]], requires_grad=True)
    loss = assignment_loss(logits, logits, torch.tensor([0, 0]), torch.ones(2))
    assert loss.item() == pytest.approx(300)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.isfinite().all()


def test_views_are_two_augmented_ones_or_two_dropouts() -> None:
    assert _objective("transport").views == AUGMENTED
    assert _objective("transport", augmentation="virtual").views == (ORIGINAL, ORIGINAL)


# --- Pseudo-labels ---


def test_labels_are_refreshed_in_place_by_transport_alone() -> None:
    embeddings = torch.randn(10, DIMENSION, generator=torch.Generator().manual_seed(3))
    for stage in STAGES:
        objective = _objective(stage).float()
        place = objective.labels.data_ptr()
        objective.refresh(lambda: embeddings)
        assert objective.labels.tolist() == LABELS.tolist(), "a head that has not learned is not asked"
        objective.head.learned = True
        objective.refresh(lambda: embeddings)
        assert objective.labels.data_ptr() == place
        if stage == "transport":
            assert objective.labels.tolist() != LABELS.tolist()
            assert objective.labels.tolist() == objective.transport_labels(embeddings).tolist()
        else:
            assert objective.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize(
    ("settings", "largest"),
    [
        ({"sizes": "equal"}, (0.3, 0.4)),
        ({"size_penalty": 100.0}, (0.3, 0.4)),
        ({"size_penalty": 0.001}, (0.65, 0.75)),
    ],
)
def test_pseudo_labels_of_a_skewed_corpus(settings: dict[str, Any], largest: tuple[float, float]) -> None:
    """Seven texts of ten are on one topic: sizes that adapt leave them there, equal ones spread them."""
    objective = _objective("transport", n_texts=300, **settings)
    topics = torch.tensor([0] * 7 + [1] * 2 + [2]).repeat(30)
    generator = torch.Generator().manual_seed(0)
    wanted = 4 * nn.functional.one_hot(topics, 3) + 0.5 * torch.randn(300, 3, generator=generator)
    objective.head.logits_without_dropout = lambda _: wanted  # type: ignore[method-assign]
    labels = objective.transport_labels(torch.zeros(300, DIMENSION))
    share = labels.bincount(minlength=3).max().item() / 300
    assert largest[0] < share < largest[1]


def test_the_transport_does_not_see_dropout() -> None:
    objective = _objective("transport").float().train()
    embeddings = torch.randn(40, DIMENSION)
    first, second = objective.head.logits_without_dropout(embeddings), objective.head.logits_without_dropout(embeddings)
    assert torch.equal(first, second)
    assert objective.head.training
    assert not torch.equal(objective.head(embeddings), objective.head(embeddings))


# --- The estimator ---


def _method(folder: Path, *, training: dict[str, Any] | None = None, **settings: Any) -> RSTC:
    chosen = {
        "batch_size": 15,
        "max_epochs": 6,
        "max_steps": None,
        "precision": "float32",
        "learning_rate": 1e-3,
        "head_learning_rate": 3e-3,
        "check_every": 0,
        **(training or {}),
    }
    lengths = {"contrast_epochs": 2, "kmeans_epochs": 2, "transport_epochs": 2}
    config = TrainingConfig(**chosen)
    return RSTC(3, encoder=str(folder), device="cpu", training=config, **{**lengths, **settings})


@pytest.fixture(scope="module")
def learned(tiny_encoder: Path) -> RSTC:
    """Trained until it separates the topics; rows with different counts. Tests must not change it."""
    lengths = {"contrast_epochs": 5, "kmeans_epochs": 15, "transport_epochs": 12}
    return _method(tiny_encoder, training={"batch_size": 30, "max_epochs": 32}, **lengths).fit([*TEXTS, *TEXTS[:7]])


def _purity(labels: np.ndarray, topics: list[str]) -> float:
    pairs = Counter(zip(labels.tolist(), topics, strict=True))
    return sum(max(pairs[label, topic] for topic in set(topics)) for label in set(labels.tolist())) / len(topics)


def test_separable_texts_are_separated_by_the_head(learned: RSTC) -> None:
    topics = [*TOPICS, *TOPICS[:7]]
    assert _purity(learned.labels_, topics) > 0.95
    assert _purity(learned.initial_labels_, topics) < 0.9  # not what the frozen encoder knew
    assert len(np.unique(learned.labels_)) == 3
    for name in ("instance", "cluster"):
        values = learned.history_.term(name)
        assert np.mean(values[-4:]) < np.mean(values[:2]), name
    assert learned.kmeans_labels_.shape == learned.labels_.shape == (67,)


def test_labels_are_what_predict_says(learned: RSTC) -> None:
    assert np.array_equal(learned.predict([*TEXTS, *TEXTS[:7]]), learned.labels_)
    assert np.array_equal(learned.head_labels_, learned.labels_)
    probabilities = learned.predict_proba(TEXTS)
    assert np.array_equal(probabilities.argmax(axis=1), learned.labels_[:60])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_an_answer_does_not_depend_on_company(learned: RSTC) -> None:
    mixed = [*UNSEEN, *TEXTS]
    together, labels = learned.predict_proba(mixed), learned.predict(mixed)
    for i in range(0, len(mixed), 7):
        assert learned.predict([mixed[i]]).item() == labels[i]
        np.testing.assert_allclose(learned.predict_proba([mixed[i]])[0], together[i], atol=1e-5)


def test_saved_and_loaded_it_answers_the_same(learned: RSTC, tmp_path: Path) -> None:
    learned.save_pretrained(tmp_path / "model")
    again = coterie.load(tmp_path / "model", device="cpu")
    assert isinstance(again, RSTC)
    np.testing.assert_allclose(again.predict_proba(UNSEEN), learned.predict_proba(UNSEEN), rtol=1e-9)
    assert np.array_equal(again.predict(TEXTS), learned.labels_[:60])


@pytest.mark.parametrize(
    "without", [(), ("contrast_epochs",), ("kmeans_epochs",), ("contrast_epochs", "kmeans_epochs")]
)
def test_stages_and_their_terms(tiny_encoder: Path, without: tuple[str, ...]) -> None:
    model = _method(tiny_encoder, **dict.fromkeys(without, 0)).fit(FEW)
    left = [stage for stage in STAGES if f"{stage}_epochs" not in without]
    assert list(model.history_.stop_reasons) == left
    assert len(model.history_.steps) == 12  # the others fill the whole
    for record in model.history_.steps:
        own = {"instance"} if record["stage"] == "contrast" else {"instance", "cluster"}
        assert set(record) - {"stage", "epoch", "step", "loss"} == own
        total = 10 * record["instance"] + record.get("cluster", 0)
        assert record["loss"] == pytest.approx(total, rel=1e-5)
    assert np.array_equal(model.predict(FEW), model.labels_)


def test_k_means_labels_are_made_after_contrast_and_transport_follows(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real_start, real_refresh = RSTCObjective.start, RSTCObjective.refresh

    def start(objective: RSTCObjective, embed_corpus: Any) -> None:
        real_start(objective, embed_corpus)
        if objective.stage == "kmeans":
            expected = objective._start.recluster(embed_corpus(), objective._start.centers.numpy()).labels
            assert np.array_equal(objective.labels.numpy(), expected)
            seen.append("start")

    def refresh(objective: RSTCObjective, embed_corpus: Any) -> None:
        before = objective.labels.clone()
        real_refresh(objective, embed_corpus)
        if objective.stage == "transport":
            assert torch.equal(objective.labels, objective.transport_labels(embed_corpus()))
            seen.append("transport")
        else:
            assert torch.equal(objective.labels, before)

    monkeypatch.setattr(RSTCObjective, "start", start)
    monkeypatch.setattr(RSTCObjective, "refresh", refresh)
    _method(tiny_encoder).fit(FEW)
    assert seen == ["start", "transport", "transport"]


def test_the_stop_looks_at_the_head_in_the_last_stage(tiny_encoder: Path) -> None:
    training = {"check_every": 1, "patience": 1, "tolerance": 0.9, "max_epochs": 12}
    model = _method(tiny_encoder, transport_epochs=6, training=training).fit(FEW)
    assert {check["stage"] for check in model.history_.checks} == {"transport"}
    assert model.history_.checks[0]["label_change"] == 1  # a head's first look
    assert model.history_.stop_reasons["transport"] == "converged"


def test_without_a_learned_head_k_means_answers(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, taken = Steps.take, []

    def interrupt(steps: Steps, place: int) -> dict[str, Tensor]:
        taken.append(place)
        if len(taken) > 1:
            raise KeyboardInterrupt
        return real(steps, place)

    monkeypatch.setattr(Steps, "take", interrupt)
    model = _method(tiny_encoder).fit(FEW)
    assert model.head_ is None
    assert any("before the head had learned" in note for note in model.notes_)
    assert np.array_equal(model.labels_, model.kmeans_labels_)
    assert np.array_equal(model.predict(FEW), model.labels_)
    model.save_pretrained(tmp_path / "model")
    assert np.array_equal(coterie.load(tmp_path / "model", device="cpu").predict(FEW), model.labels_)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 0},
        {"size_penalty": 0},
        {"temperature": 0},
        {"radius": 0},
        {"eta": -1},
        {"sizes": "even"},
        {"transport_epochs": 0},
        {"contrast_epochs": -1},
    ],
)
def test_settings_that_cannot_work(tiny_encoder: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        _method(tiny_encoder, **settings).fit(FEW)
