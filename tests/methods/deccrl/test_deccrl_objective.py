"""DECCRL's losses and its objective against the naive float64 oracle: values, gradients, what each term reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from reference import deccrl_oracle as oracle
from reference.sccl_oracle import numerical_gradient
from torch import nn

import coterie.methods.deccrl.topics as topics_module
from coterie.methods.deccrl.method import DECCRL, VARIANTS, DECCRLObjective, printed_contrast
from coterie.methods.deccrl.topics import EmbeddedTopics, LatentReconstruction, WordCounts, negative_elbo
from coterie.methods.networks import Projector
from coterie.training.objective import AUGMENTED, ORIGINAL, Batch, LossTerms

Array = np.ndarray
LATENT, CLUSTERS, TOPICS, WIDTH, HIDDEN = 4, 3, 2, 5, 6
TEMPERATURE, ALPHA, LAMBDA_C, LAMBDA_R, LAMBDA_L = 0.4, 2.5, 9.0, 0.6, 1.3  # such that each term weighs something
CORPUS = [
    "bank card bank money",
    "parcel depot",
    "the of",  # no word of the vocabulary
    "money refund card",
    "login login login reset",
    "depot courier parcel parcel",
    "reset code",
    "courier refund",
]
VOCABULARY = ["bank", "card", "code", "courier", "depot", "login", "money", "parcel", "refund", "reset"]
ROWS = np.array([5, 0, 2, 7, 4, 3])  # in no order, so that a text and its words cannot be mixed up unseen
COUNTS = np.array([1.0, 3.0, 2.0, 1.0, 5.0, 1.0])
SEEDS = pytest.mark.parametrize("seed", [0, 1, 2])
WEIGHTED = pytest.mark.parametrize("weights", [np.ones(len(ROWS)), COUNTS], ids=["plain", "weighted"])
EVERY_FORM = pytest.mark.parametrize(
    ("variant", "augmentation", "printed"),
    [(v, a, p) for v in VARIANTS for a in ("word_deletion", "virtual") for p in (False, True)],
)
TERMS = {
    "topics": {"contrast": 1.0, "cluster": LAMBDA_C, "topics": LAMBDA_R},
    "latent": {"contrast": 1.0, "cluster": LAMBDA_C, "latent": LAMBDA_L},
    "none": {"contrast": 1.0, "cluster": LAMBDA_C},
}


@pytest.fixture(autouse=True)
def _few_hidden_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_module, "HIDDEN", HIDDEN)


def _normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def _tensor(array: Array, requires_grad: bool = False) -> torch.Tensor:
    return torch.tensor(array, dtype=torch.float64, requires_grad=requires_grad)


def _counts() -> WordCounts:
    ones = np.ones(len(CORPUS), dtype=np.int64)
    return WordCounts.of(CORPUS, ones, min_df=1, max_df=1.0, stop_words="english")


def _bag(rows: Array = ROWS) -> Array:
    """How often each text holds each word, counted by hand."""
    found = [Counter(CORPUS[i].split()) for i in rows]
    return np.array([[each[word] for word in VOCABULARY] for each in found], dtype=np.float64)


def _topic_model(seed: int = 0, learned: bool = False) -> EmbeddedTopics:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(len(VOCABULARY), WIDTH, generator=generator)
    guide = EmbeddedTopics(_counts(), vectors, learned, LATENT, TOPICS, generator).double()
    # First values near zero leave KL and theta close to where nothing can be seen.
    with torch.no_grad():
        for layer in (guide.mean, guide.log_variance, guide.infer, guide.generate):
            for parameter in layer.parameters():
                parameter.mul_(2)
    return guide


def _objective(
    variant: str, augmentation: str = "word_deletion", printed: bool = False, seed: int = 0, **settings: Any
) -> DECCRLObjective:
    chosen = {
        "temperature": TEMPERATURE,
        "alpha": ALPHA,
        "lambda_c": LAMBDA_C,
        "lambda_r": LAMBDA_R,
        "lambda_l": LAMBDA_L,
        **settings,
    }
    learned = chosen.pop("learned", False)
    method = DECCRL(CLUSTERS, variant=variant, augmentation=augmentation, printed_contrast=printed, **chosen)
    method.encoder_ = SimpleNamespace(projection=nn.Linear(3, LATENT))  # type: ignore[assignment]
    generator = torch.Generator().manual_seed(seed)
    guide: nn.Module | None = None
    if variant == "topics":
        guide = _topic_model(seed, learned)
    elif variant == "latent":
        guide = LatentReconstruction(LATENT, generator)
    centers = torch.from_numpy(_normal(CLUSTERS, LATENT, seed=100 + seed))
    return DECCRLObjective(method, centers, Projector(LATENT, generator, output=3), guide).double()


def _views(objective: DECCRLObjective, seed: int = 0) -> list[Array]:
    return [_normal(len(ROWS), LATENT, seed=10 * seed + i) for i in range(len(objective.views))]


def _loss(objective: DECCRLObjective, views: list[Any], weights: Array, noise_seed: int = 5) -> LossTerms:
    tensors = tuple(view if isinstance(view, torch.Tensor) else _tensor(view) for view in views)
    with torch.random.fork_rng():
        torch.manual_seed(noise_seed)
        return objective.loss(Batch(tensors, torch.from_numpy(ROWS), torch.from_numpy(weights)))


def _noise(noise_seed: int = 5) -> Array:
    with torch.random.fork_rng():
        torch.manual_seed(noise_seed)
        return torch.randn(len(ROWS), TOPICS, dtype=torch.float64).numpy()


def _values(module: nn.Module) -> dict[str, Array]:
    return {name: parameter.detach().numpy().copy() for name, parameter in module.named_parameters()}


@dataclass
class Expected:
    """The paper's terms by the oracle, with t held where it is built (no gradient goes through it)."""

    objective: DECCRLObjective
    variant: str
    printed: bool
    weights: Array
    noise: Array

    def __post_init__(self) -> None:
        self.parameters = _values(self.objective)
        self.targets: Array | None = None

    def o(self, views: list[Array], p: dict[str, Array]) -> Array:
        return oracle.student_t(views[0], p["centers"], ALPHA)

    def contrast(self, views: list[Array], p: dict[str, Array]) -> float:
        first, second = (
            oracle.linear(
                oracle.relu(oracle.linear(view, p["projector.0.weight"], p["projector.0.bias"])),
                p["projector.2.weight"],
                p["projector.2.bias"],
            )
            for view in views[-2:]
        )
        return oracle.contrast(first, second, TEMPERATURE, self.weights, printed=self.printed)

    def cluster(self, views: list[Array], p: dict[str, Array]) -> float:
        o = self.o(views, p)
        targets = oracle.target_distribution(o, self.weights) if self.targets is None else self.targets
        return oracle.cluster_loss(targets, o, self.weights)

    def topics(self, views: list[Array], p: dict[str, Array], o: Array | None = None) -> float:
        alpha = oracle.topic_embeddings(
            p["centers"], p["guide.topic_vectors"], p["guide.generate.weight"], p["guide.generate.bias"]
        )
        beta = oracle.word_distributions(p["guide.vectors"], alpha)
        mu, logvar = oracle.inference_network(
            _bag(),
            hidden_weight=p["guide.infer.weight"],
            hidden_bias=p["guide.infer.bias"],
            mean_weight=p["guide.mean.weight"],
            mean_bias=p["guide.mean.bias"],
            logvar_weight=p["guide.log_variance.weight"],
            logvar_bias=p["guide.log_variance.bias"],
        )
        o = self.o(views, p) if o is None else o
        return oracle.reconstruction_loss(_bag(), o, beta, mu, logvar, self.noise, self.weights)

    def latent(self, views: list[Array], p: dict[str, Array]) -> float:
        return oracle.latent_reconstruction(
            views[0],
            down_weight=p["guide.squeeze.weight"],
            down_bias=p["guide.squeeze.bias"],
            up_weight=p["guide.rebuild.weight"],
            up_bias=p["guide.rebuild.bias"],
            weights=self.weights,
        )

    def terms(self, views: list[Array], p: dict[str, Array] | None = None) -> dict[str, float]:
        p = self.parameters if p is None else p
        return {name: getattr(self, name)(views, p) for name in TERMS[self.variant]}

    def total(self, views: list[Array], p: dict[str, Array] | None = None) -> float:
        terms = self.terms(views, p)
        extra = terms.get("topics", terms.get("latent", 0.0))
        weight = LAMBDA_R if "topics" in terms else LAMBDA_L
        return oracle.deccrl_total(
            terms["contrast"], terms["cluster"], extra, lambda_c=LAMBDA_C, lambda_r=weight
        )  # Eq. 16


def _expected(objective: DECCRLObjective, variant: str, printed: bool = False, weights: Array = COUNTS) -> Expected:
    return Expected(objective, variant, printed, weights, _noise())


def _assert_gradient(gradient: torch.Tensor | None, function: Callable[[Array], float], at: Array) -> None:
    found = np.zeros_like(at) if gradient is None else gradient.numpy()
    np.testing.assert_allclose(found, numerical_gradient(function, at), rtol=1e-5, atol=1e-7)


# --- Eq. 2-4 ---


@SEEDS
@WEIGHTED
@pytest.mark.parametrize("temperature", [0.5, 0.1])
def test_the_printed_contrast(seed: int, weights: Array, temperature: float) -> None:
    first, second = _normal(6, 4, seed=seed), _normal(6, 4, seed=seed + 50)
    leaves = [_tensor(view, requires_grad=True) for view in (first, second)]
    loss = printed_contrast(leaves[0], leaves[1], temperature, torch.from_numpy(weights))
    expected = oracle.contrast(first, second, temperature, weights, printed=True)
    assert loss.item() == pytest.approx(expected, rel=1e-10)
    loss.backward()
    _assert_gradient(leaves[0].grad, lambda x: oracle.contrast(x, second, temperature, weights, printed=True), first)
    _assert_gradient(leaves[1].grad, lambda x: oracle.contrast(first, x, temperature, weights, printed=True), second)


def test_the_two_forms_of_the_contrast_differ() -> None:
    views = [_normal(6, LATENT, seed=i) for i in range(3)]
    plain, printed = (
        _loss(_objective("none", printed=printed), views, COUNTS).named["contrast"].item() for printed in (False, True)
    )
    assert abs(plain - printed) > 0.1


def test_the_contrast_has_twice_the_scale_of_nt_xent() -> None:
    """Eq. 4 divides both anchors of a text by M, not by 2M."""
    from coterie.losses.nt_xent import nt_xent

    objective = _objective("none")
    views = [_tensor(view) for view in _views(objective)]
    single = nt_xent(*(objective.projector(view) for view in views[1:]), TEMPERATURE, torch.from_numpy(COUNTS))
    assert _loss(objective, views, COUNTS).named["contrast"].item() == pytest.approx(2 * single.item(), rel=1e-12)


# --- Eq. 5-9 ---


@SEEDS
def test_the_head_is_eq_5(seed: int) -> None:
    objective = _objective("none", seed=seed)
    latent = _normal(6, LATENT, seed=seed)
    found = objective.head_probabilities(_tensor(latent)).detach().numpy()
    np.testing.assert_allclose(found, oracle.student_t(latent, objective.centers.detach().numpy(), ALPHA), rtol=1e-10)


@SEEDS
@WEIGHTED
def test_the_cluster_term_and_its_fixed_targets(seed: int, weights: Array) -> None:
    objective = _objective("none", seed=seed)
    views = _views(objective, seed)
    anchor = _tensor(views[0], requires_grad=True)
    cluster = _loss(objective, [anchor, *views[1:]], weights).named["cluster"]
    centers = objective.centers.detach().numpy().copy()
    o = oracle.student_t(views[0], centers, ALPHA)
    t = oracle.target_distribution(o, weights)
    assert cluster.item() == pytest.approx(oracle.cluster_loss(t, o, weights), rel=1e-10)
    cluster.backward()

    def fixed(latent: Array, at: Array = centers) -> float:
        return oracle.cluster_loss(t, oracle.student_t(latent, at, ALPHA), weights)

    def moving(latent: Array) -> float:
        q = oracle.student_t(latent, centers, ALPHA)
        return oracle.cluster_loss(oracle.target_distribution(q, weights), q, weights)

    _assert_gradient(anchor.grad, fixed, views[0])
    _assert_gradient(objective.centers.grad, lambda at: fixed(views[0], at), centers)
    # With a gradient through t this would be another.
    assert np.abs(numerical_gradient(moving, views[0]) - anchor.grad.numpy()).max() > 1e-3


# --- Eq. 10-15 ---


@SEEDS
def test_the_words_of_the_topics_are_eq_10_and_11(seed: int) -> None:
    guide, centers = _topic_model(seed), _normal(CLUSTERS, LATENT, seed=seed)
    leaf = _tensor(centers, requires_grad=True)
    beta = guide.topic_words(leaf)
    assert beta.shape == (CLUSTERS, TOPICS, len(VOCABULARY))
    p = _values(guide)

    def expected(at: Array, topics: Array = p["topic_vectors"]) -> Array:
        alpha = oracle.topic_embeddings(at, topics, p["generate.weight"], p["generate.bias"])
        return oracle.word_distributions(p["vectors"], alpha).transpose(0, 2, 1)

    np.testing.assert_allclose(beta.detach().numpy(), expected(centers), rtol=1e-10)
    np.testing.assert_allclose(beta.detach().sum(dim=-1).numpy(), 1)
    # The clusters' centres are trained through Eq. 10, the topic vectors too.
    probe = _normal(CLUSTERS, TOPICS, len(VOCABULARY), seed=9)
    (beta * _tensor(probe)).sum().backward()
    _assert_gradient(leaf.grad, lambda at: float((expected(at) * probe).sum()), centers)
    _assert_gradient(
        guide.topic_vectors.grad, lambda at: float((expected(centers, at) * probe).sum()), p["topic_vectors"]
    )
    assert leaf.grad is not None and leaf.grad.abs().max() > 1e-3


@SEEDS
def test_the_inference_network(seed: int) -> None:
    guide = _topic_model(seed)
    p = _values(guide)
    found = guide.proportions(torch.from_numpy(ROWS))
    expected = oracle.inference_network(
        _bag(),
        hidden_weight=p["infer.weight"],
        hidden_bias=p["infer.bias"],
        mean_weight=p["mean.weight"],
        mean_bias=p["mean.bias"],
        logvar_weight=p["log_variance.weight"],
        logvar_bias=p["log_variance.bias"],
    )
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-9, atol=1e-12)
    assert guide.infer.weight.shape == (HIDDEN, len(VOCABULARY))


def test_the_hidden_layer_has_800_units_unless_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert _topic_model().infer.weight.shape == (800, len(VOCABULARY))


def _elbo_case(seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {
        "assignments": generator.dirichlet(np.ones(CLUSTERS), size=6),
        "beta": generator.dirichlet(np.ones(len(VOCABULARY)), size=(CLUSTERS, TOPICS)),
        "mean": generator.normal(size=(6, TOPICS)),
        "log_variance": generator.normal(size=(6, TOPICS)),
        "noise": generator.normal(size=(6, TOPICS)),
    }


def _elbo_oracle(case: dict[str, Array], weights: Array, bag: Array) -> float:
    return oracle.reconstruction_loss(
        bag,
        case["assignments"],
        case["beta"].transpose(0, 2, 1),
        case["mean"],
        case["log_variance"],
        case["noise"],
        weights,
    )


def _elbo(case: dict[str, torch.Tensor], weights: Array, rows: Array = ROWS) -> torch.Tensor:
    counts = _counts()
    words, numbers = torch.from_numpy(counts.words[rows]), torch.from_numpy(counts.counts[rows]).double()
    return negative_elbo(**case, words=words, counts=numbers, weights=torch.from_numpy(weights))


@SEEDS
@WEIGHTED
def test_the_negative_elbo_and_all_its_gradients(seed: int, weights: Array) -> None:
    case = _elbo_case(seed)
    leaves = {name: _tensor(array, requires_grad=True) for name, array in case.items()}
    loss = _elbo(leaves, weights)
    assert not _bag()[2].any() and weights[2] > 0  # one of the texts has no word of the vocabulary
    assert loss.item() == pytest.approx(_elbo_oracle(case, weights, _bag()), rel=1e-10)
    loss.backward()
    for name, leaf in leaves.items():
        _assert_gradient(leaf.grad, lambda x, name=name: _elbo_oracle({**case, name: x}, weights, _bag()), case[name])
    # What the text without words says has no part in it.
    assert not leaves["mean"].grad[2].any()  # type: ignore[index]


def test_texts_without_words_do_not_count_in_the_mean() -> None:
    case = {name: array[:2] if name != "beta" else array for name, array in _elbo_case(0).items()}
    both = _elbo({name: _tensor(array) for name, array in case.items()}, np.array([2.0, 40.0]), np.array([0, 2]))
    alone = {name: _tensor(array[:1] if name != "beta" else array) for name, array in case.items()}
    assert both.item() == pytest.approx(_elbo(alone, np.array([2.0]), np.array([0])).item(), rel=1e-12)


def test_a_batch_of_texts_without_words_has_no_topic_loss_and_no_gradient() -> None:
    case = {name: array[:2] if name != "beta" else array for name, array in _elbo_case(0).items()}
    leaves = {name: _tensor(array, requires_grad=True) for name, array in case.items()}
    loss = _elbo(leaves, np.array([2.0, 40.0]), np.array([2, 2]))
    loss.backward()
    assert loss.item() == 0
    for leaf in leaves.values():
        assert leaf.grad is not None and not leaf.grad.any()


def test_a_word_that_no_topic_holds_stays_finite() -> None:
    case = _elbo_case(0)
    case["beta"][:] = 0
    case["beta"][..., 0] = 1
    leaves = {name: _tensor(array, requires_grad=True) for name, array in case.items()}
    loss = _elbo(leaves, COUNTS)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(leaf.grad).all() for leaf in leaves.values())  # type: ignore[union-attr]


def test_noise_is_drawn_in_training_alone() -> None:
    objective = _objective("topics")
    views = _views(objective)

    def topics(noise_seed: int) -> float:
        return _loss(objective, views, COUNTS, noise_seed).named["topics"].item()

    assert topics(1) == topics(1) != topics(2)
    objective.eval()
    assert topics(1) == topics(2)
    silent = Expected(objective, "topics", False, COUNTS, np.zeros((len(ROWS), TOPICS)))
    assert topics(1) == pytest.approx(silent.terms(views)["topics"], rel=1e-9)


# --- The alternative: latent reconstruction ---


@SEEDS
@WEIGHTED
def test_the_latent_reconstruction(seed: int, weights: Array) -> None:
    guide = LatentReconstruction(LATENT, torch.Generator().manual_seed(seed)).double()
    latent, p = _normal(6, LATENT, seed=seed), _values(guide)
    leaf = _tensor(latent, requires_grad=True)
    loss = guide.loss(leaf, torch.from_numpy(weights))

    def expected(h: Array) -> float:
        return oracle.latent_reconstruction(
            h,
            down_weight=p["squeeze.weight"],
            down_bias=p["squeeze.bias"],
            up_weight=p["rebuild.weight"],
            up_bias=p["rebuild.bias"],
            weights=weights,
        )

    assert guide.squeeze.weight.shape == (LATENT // 2, LATENT)
    assert loss.item() == pytest.approx(expected(latent), rel=1e-10)
    loss.backward()
    _assert_gradient(leaf.grad, expected, latent)


# --- The whole objective, Eq. 16 ---


@SEEDS
@EVERY_FORM
@WEIGHTED
def test_the_terms_and_the_total_are_the_papers(
    variant: str, augmentation: str, printed: bool, weights: Array, seed: int
) -> None:
    objective = _objective(variant, augmentation, printed, seed)
    views = _views(objective, seed)
    terms = _loss(objective, views, weights)
    expected = _expected(objective, variant, printed, weights)
    assert set(terms.named) == {"loss", *TERMS[variant]}
    for name, value in expected.terms(views).items():
        assert terms.named[name].item() == pytest.approx(value, rel=1e-9), name
    assert terms.total.dtype == torch.float64
    assert terms.total.item() == pytest.approx(expected.total(views), rel=1e-9)
    assert terms.named["loss"] is terms.total


@pytest.mark.parametrize("how", ["flipped", "dropped"])
@pytest.mark.parametrize(("variant", "term"), [(variant, term) for variant in VARIANTS for term in TERMS[variant]])
def test_no_term_can_be_flipped_or_dropped_unseen(variant: str, term: str, how: str) -> None:
    objective = _objective(variant)
    views = _views(objective)
    total = _loss(objective, views, COUNTS).total.item()
    terms = _expected(objective, variant).terms(views)
    signs = dict.fromkeys(terms, 1.0) | {term: -1.0 if how == "flipped" else 0.0}
    wrong = sum(signs[name] * TERMS[variant][name] * value for name, value in terms.items())
    assert abs(wrong - total) > 0.05


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("augmentation", ["word_deletion", "virtual"])
def test_the_gradient_is_that_of_the_oracle_with_t_fixed(variant: str, augmentation: str) -> None:
    objective = _objective(variant, augmentation, learned=True)
    views = _views(objective)
    leaves = [_tensor(view, requires_grad=True) for view in views]
    _loss(objective, leaves, COUNTS).total.backward()
    expected = _expected(objective, variant)
    expected.targets = oracle.target_distribution(expected.o(views, expected.parameters), COUNTS)
    for i, leaf in enumerate(leaves):
        _assert_gradient(leaf.grad, lambda view, i=i: expected.total([*views[:i], view, *views[i + 1 :]]), views[i])
    for name, parameter in objective.named_parameters():
        if name.startswith("latent.") or name in {"projector.0.weight", "guide.infer.weight", "guide.generate.weight"}:
            continue  # FC_e is in front of the views; the large matrices would take long and add nothing
        at = expected.parameters[name]
        _assert_gradient(
            parameter.grad, lambda x, name=name: expected.total(views, {**expected.parameters, name: x}), at
        )


# --- What a term reaches ---


def _reached(term: str, variant: str, **settings: Any) -> tuple[set[str], list[bool]]:
    """Which parameters and which views have a gradient from one term alone."""
    objective = _objective(variant, **settings)
    leaves = [_tensor(view, requires_grad=True) for view in _views(objective)]
    _loss(objective, leaves, COUNTS).named[term].backward()
    names = {n for n, p in objective.named_parameters() if p.grad is not None and p.grad.abs().max() > 1e-8}
    return names, [leaf.grad is not None and bool(leaf.grad.abs().max() > 1e-8) for leaf in leaves]


PROJECTOR = {f"projector.{i}.{kind}" for i in (0, 2) for kind in ("weight", "bias")}
INFERENCE = {f"guide.{layer}.{kind}" for layer in ("infer", "mean", "log_variance") for kind in ("weight", "bias")}
GENERATIVE = {"guide.topic_vectors", "guide.generate.weight", "guide.generate.bias"}


def test_the_contrast_reaches_projector_and_augmented_views() -> None:
    assert _reached("contrast", "topics") == (PROJECTOR, [False, True, True])
    assert _reached("contrast", "topics", augmentation="virtual") == (PROJECTOR, [True, True])


def test_the_cluster_term_reaches_centres_and_anchor() -> None:
    assert _reached("cluster", "topics") == ({"centers"}, [True, False, False])


def test_the_topics_reach_centres_the_whole_topic_model_and_the_anchor_through_o() -> None:
    names, views = _reached("topics", "topics")
    assert names == {"centers"} | GENERATIVE | INFERENCE
    assert views == [True, False, False]


def test_centres_learn_from_words_through_eq_10_too() -> None:
    """With o held fast, what is left is the way through alpha."""
    objective = _objective("topics")
    views = _views(objective)
    o = objective.head_probabilities(_tensor(views[0])).detach()
    assert isinstance(objective.guide, EmbeddedTopics)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        loss = objective.guide.loss(o, objective.centers, torch.from_numpy(ROWS), torch.from_numpy(COUNTS))
    loss.backward()
    expected = _expected(objective, "topics")
    _assert_gradient(
        objective.centers.grad,
        lambda at: expected.topics(views, {**expected.parameters, "centers": at}, o.numpy()),
        expected.parameters["centers"],
    )
    assert objective.centers.grad is not None and objective.centers.grad.abs().max() > 1e-4


def test_word_vectors_are_trained_only_where_learned() -> None:
    assert "guide.vectors" not in _reached("topics", "topics")[0]
    assert "guide.vectors" in _reached("topics", "topics", learned=True)[0]
    assert not _topic_model(learned=False).vectors.requires_grad
    assert _topic_model(learned=True).vectors.requires_grad


def test_the_latent_reconstruction_reaches_its_layers_and_the_anchor() -> None:
    names, views = _reached("latent", "latent")
    assert names == {f"guide.{layer}.{kind}" for layer in ("squeeze", "rebuild") for kind in ("weight", "bias")}
    assert views == [True, False, False]


# --- Parts ---


def test_the_views_asked_for() -> None:
    assert _objective("topics").views == (ORIGINAL, *AUGMENTED)
    assert _objective("topics", "virtual").views == (ORIGINAL, ORIGINAL)


def test_the_rates_of_the_parts() -> None:
    objective = _objective("topics", topic_learning_rate=0.25)
    assert objective.own_rates() == {"latent": objective._settings.training.head_learning_rate, "guide": 0.25}
    assert set(_objective("none").own_rates()) == {"latent"}
    # FC_e is the encoder's own layer, not a copy.
    assert objective.latent is objective._settings.encoder_.projection


def test_the_settings_arrive_in_the_loss() -> None:
    def total(variant: str, **changed: Any) -> float:
        objective = _objective(variant, **changed)
        return _loss(objective, _views(objective), COUNTS).total.item()

    for variant, name, value in [
        ("topics", "temperature", 0.9),
        ("topics", "alpha", 1.0),
        ("topics", "lambda_c", 3.0),
        ("topics", "lambda_r", 3.0),
        ("latent", "lambda_l", 3.0),
    ]:
        assert abs(total(variant, **{name: value}) - total(variant)) > 1e-3, name


def test_a_batch_of_one_text_has_nothing_to_contrast() -> None:
    one = torch.ones(1, 4, requires_grad=True)
    loss = printed_contrast(one, 2 * one, 0.5, torch.ones(1))
    loss.backward()
    assert loss.item() == 0 and one.grad is not None and not one.grad.any()
