"""SCCL's objectives, as the estimator builds them, against the naive float64 oracle: value, gradient, views."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from reference import sccl_oracle as oracle

from coterie.encoders.sentence_transformer_files import SentenceSettings
from coterie.methods.sccl import SCCL, VARIANTS, Clustering, Projector
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, LossTerms, Objective

Array = np.ndarray
TEXTS, DIMENSION, CLUSTERS, OUTPUT = 6, 5, 3, 4
TEMPERATURE, ETA, ALPHA, RADIUS = 0.3, 7.0, 2.5, 1.7
COUNTS = np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0])

JOINT = ("joint", "alternative_1", "alternative_2")
EVERY_FORM = pytest.mark.parametrize(
    ("variant", "augmentation"), [(v, a) for v in VARIANTS for a in ("word_deletion", "virtual")]
)
WEIGHTED = pytest.mark.parametrize("weights", [np.ones(TEXTS), COUNTS], ids=["plain", "weighted"])


def _normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


GIVEN_CENTERS = _normal(CLUSTERS, DIMENSION, seed=100)
CENTERS = RADIUS * GIVEN_CENTERS


def _objectives(variant: str, augmentation: str, normalize: bool = True, **changed: Any) -> list[Objective]:
    """One objective a stage, in float64, with a head small enough for loops."""
    settings = {"temperature": TEMPERATURE, "eta": ETA, "alpha": ALPHA, "radius": RADIUS, **changed}
    method = SCCL(CLUSTERS, variant=variant, augmentation=augmentation, **settings)
    method.encoder_ = SimpleNamespace(settings=SentenceSettings(normalize=normalize))  # type: ignore[assignment]
    generator = torch.Generator().manual_seed(0)
    start: Any = SimpleNamespace(
        centers=torch.from_numpy(GIVEN_CENTERS),
        generator=generator,
        recluster=lambda embeddings: SimpleNamespace(centers=embeddings[:CLUSTERS].numpy()),
    )
    stages = method._stages(start)
    for stage in stages:
        stage.objective.double()
        if "projector" in dict(stage.objective.named_children()):
            stage.objective.projector = Projector(DIMENSION, generator, output=OUTPUT).double()
    return [stage.objective for stage in stages]


def _embeddings(objective: Objective) -> list[Array]:
    """Different numbers for each view, also for two dropout copies of the original."""
    return [_normal(TEXTS, DIMENSION, seed=i) for i in range(len(objective.views))]


def _loss(objective: Objective, tensors: list[torch.Tensor], weights: Array) -> LossTerms:
    return objective.loss(Batch(tuple(tensors), torch.arange(TEXTS), torch.from_numpy(weights)))


def _head(objective: Objective, embeddings: Array) -> Array:
    first, _, second = (module for module in objective.projector.children())
    w1, b1, w2, b2 = (p.detach().numpy() for p in (first.weight, first.bias, second.weight, second.bias))
    return np.maximum(embeddings @ w1.T + b1, 0) @ w2.T + b2


class Expected:
    """The paper's terms by the oracle, with p held at the point where it is built (no gradient goes through it)."""

    def __init__(self, objective: Objective, stage: str, augmentation: str, weights: Array) -> None:
        self.objective, self.stage, self.weights = objective, stage, weights
        self.halved = stage == "joint" and augmentation == "virtual"
        if stage != "instance":
            self.targets = [self._target(view) for view in _embeddings(objective)]

    def _q(self, view: Array, centers: Array) -> Array:
        return oracle.student_t(RADIUS * view, centers, ALPHA)  # Eq. 3, on a sphere of this radius

    def _target(self, view: Array) -> Array:
        return oracle.target_distribution(self._q(view, CENTERS), self.weights)  # Eq. 4

    def instance(self, views: list[Array]) -> float:
        first, second = (_head(self.objective, view) for view in views[-2:])
        return oracle.nt_xent(first, second, TEMPERATURE, self.weights)  # Eq. 1-2

    def cluster(self, views: list[Array], centers: Array) -> float:
        q, p = [self._q(view, centers) for view in views], self.targets
        kl = oracle.kl_divergence
        if self.stage == "alternative_1":
            return kl(p[0], q[1], self.weights) + kl(p[1], q[0], self.weights)  # Eq. 8
        if self.stage == "alternative_2":
            return kl(p[0], q[1], self.weights) + kl(p[0], q[2], self.weights)  # Eq. 9
        return kl(p[0], q[0], self.weights) / (2 if self.halved else 1)  # Eq. 5-6

    def total(self, views: list[Array], centers: Array = CENTERS) -> float:
        if self.stage == "instance":
            return ETA * self.instance(views)
        if self.stage == "cluster":
            return self.cluster(views, centers)
        return ETA * self.instance(views) + self.cluster(views, centers)  # Eq. 7


def _cases(variant: str, augmentation: str, weights: Array) -> list[tuple[Objective, Expected]]:
    objectives = _objectives(variant, augmentation)
    stages = ["instance", "cluster"] if variant == "sequential" else [variant]
    return [(o, Expected(o, stage, augmentation, weights)) for o, stage in zip(objectives, stages, strict=True)]


# --- Value and gradient ---


@EVERY_FORM
@WEIGHTED
def test_the_total_is_the_papers(variant: str, augmentation: str, weights: Array) -> None:
    for objective, expected in _cases(variant, augmentation, weights):
        views = _embeddings(objective)
        terms = _loss(objective, [torch.from_numpy(view) for view in views], weights)
        assert terms.total.dtype == torch.float64
        assert terms.total.item() == pytest.approx(expected.total(views), rel=1e-10)
        assert terms.named["loss"] is terms.total


@EVERY_FORM
@WEIGHTED
def test_the_terms_add_up_and_none_is_nothing(variant: str, augmentation: str, weights: Array) -> None:
    for objective, expected in _cases(variant, augmentation, weights):
        views = _embeddings(objective)
        terms = {k: v.item() for k, v in _loss(objective, list(map(torch.from_numpy, views)), weights).named.items()}
        names = {"instance": {"instance"}, "cluster": {"cluster"}}.get(expected.stage, {"instance", "cluster"})
        assert set(terms) == {"loss", *names}
        # A term that is zero, or a flipped sign that changes nothing, would prove nothing.
        assert min(terms.values()) > 0.01
        assert terms["loss"] == pytest.approx(ETA * terms.get("instance", 0) + terms.get("cluster", 0), rel=1e-12)
        if "instance" in names:
            assert terms["instance"] == pytest.approx(expected.instance(views), rel=1e-10)
        if "cluster" in names:
            assert terms["cluster"] == pytest.approx(expected.cluster(views, CENTERS), rel=1e-10)


def _assert_gradient(gradient: torch.Tensor | None, function: Callable[[Array], float], at: Array) -> None:
    numeric = oracle.numerical_gradient(function, at)
    found = np.zeros_like(at) if gradient is None else gradient.numpy()
    np.testing.assert_allclose(found, numeric, rtol=1e-5, atol=1e-7)


@EVERY_FORM
@WEIGHTED
def test_the_gradient_is_that_of_the_oracle_with_p_fixed(variant: str, augmentation: str, weights: Array) -> None:
    for objective, expected in _cases(variant, augmentation, weights):
        views = _embeddings(objective)
        tensors = [torch.from_numpy(view.copy()).requires_grad_() for view in views]
        _loss(objective, tensors, weights).total.backward()
        for i, tensor in enumerate(tensors):

            def moved(view: Array, place: int = i, expected: Expected = expected, views: list[Array] = views) -> float:
                return expected.total([*views[:place], view, *views[place + 1 :]])

            _assert_gradient(tensor.grad, moved, views[i])
        if expected.stage != "instance":
            heads = [module for module in objective.modules() if isinstance(module, Clustering)]
            assert len(heads) == 1
            _assert_gradient(heads[0].centers.grad, lambda centers, e=expected, v=views: e.total(v, centers), CENTERS)
            assert heads[0].centers.grad.abs().max() > 1e-3


def test_the_target_takes_no_gradient() -> None:
    """With a gradient through p the anchor of Eq. 9 would move; it must not."""
    (objective,) = _objectives("alternative_2", "word_deletion")
    tensors = [torch.from_numpy(view).requires_grad_() for view in _embeddings(objective)]
    _loss(objective, tensors, COUNTS).total.backward()
    assert tensors[0].grad is None or not tensors[0].grad.any()
    assert tensors[1].grad.abs().max() > 1e-3


# --- Views ---

WANTED: dict[tuple[str, str], list[tuple[str, ...]]] = {
    ("joint", "word_deletion"): [(ORIGINAL, *AUGMENTED)],
    ("joint", "virtual"): [(ORIGINAL, ORIGINAL)],
    ("instance", "word_deletion"): [AUGMENTED],
    ("instance", "virtual"): [(ORIGINAL, ORIGINAL)],
    ("cluster", "word_deletion"): [(ORIGINAL,)],
    ("cluster", "virtual"): [(ORIGINAL,)],
    ("sequential", "word_deletion"): [AUGMENTED, (ORIGINAL,)],
    ("sequential", "virtual"): [(ORIGINAL, ORIGINAL), (ORIGINAL,)],
    ("alternative_1", "word_deletion"): [AUGMENTED],
    ("alternative_1", "virtual"): [(ORIGINAL, ORIGINAL)],
    ("alternative_2", "word_deletion"): [(ORIGINAL, *AUGMENTED)],
    ("alternative_2", "virtual"): [(ORIGINAL, ORIGINAL, ORIGINAL)],
}


@EVERY_FORM
def test_the_views_asked_for(variant: str, augmentation: str) -> None:
    assert [objective.views for objective in _objectives(variant, augmentation)] == WANTED[variant, augmentation]
    available = {ORIGINAL, *SCCL(2, augmentation=augmentation)._augmenters()}
    assert all(set(objective.views) <= available for objective in _objectives(variant, augmentation))


# --- Parts ---


@pytest.mark.parametrize("variant", ["joint", "cluster", "sequential", "alternative_1", "alternative_2"])
def test_the_clustering_head_starts_at_the_given_centres(variant: str) -> None:
    for normalize, scale in ((True, RADIUS), (False, 1.0)):
        objective = _objectives(variant, "word_deletion", normalize)[-1]
        (head,) = (module for module in objective.modules() if isinstance(module, Clustering))
        np.testing.assert_allclose(head.centers.detach().numpy(), scale * GIVEN_CENTERS)
        head.centers.data.zero_()
        assert np.abs(GIVEN_CENTERS).sum() > 0  # a copy, not the caller's own


def test_the_second_stage_of_sequential_places_its_centres_anew() -> None:
    _, objective = _objectives("sequential", "word_deletion")
    learned = torch.from_numpy(_normal(TEXTS, DIMENSION, seed=9))
    objective.start(lambda: learned)
    assert isinstance(objective, Clustering)
    torch.testing.assert_close(objective.centers.data, RADIUS * learned[:CLUSTERS])
    assert objective.centers.requires_grad
    # Alone, the clustering loss keeps the centres of the frozen k-means.
    (alone,) = _objectives("cluster", "word_deletion")
    alone.start(lambda: learned)
    np.testing.assert_allclose(alone.centers.detach().numpy(), CENTERS)


def test_embeddings_that_are_not_normalised_are_not_scaled() -> None:
    (objective,) = _objectives("cluster", "word_deletion", normalize=False)
    (view,) = _embeddings(objective)
    q = oracle.student_t(view, GIVEN_CENTERS, ALPHA)
    expected = oracle.kl_divergence(oracle.target_distribution(q, COUNTS), q, COUNTS)
    assert _loss(objective, [torch.from_numpy(view)], COUNTS).total.item() == pytest.approx(expected, rel=1e-10)


def test_the_projector_is_the_papers_head() -> None:
    head = Projector(7, torch.Generator().manual_seed(0))
    shapes = [tuple(parameter.shape) for parameter in head.parameters()]
    assert shapes == [(7, 7), (7,), (128, 7), (128,)]
    again = Projector(7, torch.Generator().manual_seed(0))
    other = Projector(7, torch.Generator().manual_seed(1))
    assert all(torch.equal(a, b) for a, b in zip(head.parameters(), again.parameters(), strict=True))
    assert not torch.equal(head[0].weight, other[0].weight)
    # nn.Linear's own range: uniform within one over the root of the inputs.
    for parameter in head.parameters():
        assert parameter.abs().max() <= 7**-0.5
    assert head[2].weight.abs().max() > 0.9 * 7**-0.5


@pytest.mark.parametrize("variant", JOINT)
def test_the_settings_arrive_in_the_loss(variant: str) -> None:
    def total(**changed: Any) -> float:
        (objective,) = _objectives(variant, "word_deletion", **changed)
        return _loss(objective, [torch.from_numpy(view) for view in _embeddings(objective)], COUNTS).total.item()

    base = total()
    for changed in ({"temperature": 0.9}, {"eta": 1.0}, {"alpha": 1.0}, {"radius": 1.0}):
        assert abs(total(**changed) - base) > 1e-3
