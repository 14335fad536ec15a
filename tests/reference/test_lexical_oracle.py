"""The oracle itself: cases worked out by hand, and what the equations must satisfy whatever the data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from . import lexical_oracle as oracle
from . import sccl_oracle

WORDS, HIDDEN, LATENT = 5, 4, 3


def _random(*shape: int, seed: int = 0) -> oracle.FloatArray:
    return np.random.default_rng(seed).normal(size=shape)


def _rows(count: int, seed: int = 0) -> oracle.FloatArray:
    """TF-IDF rows: unit length, none negative, some words missing."""
    x = np.maximum(_random(count, WORDS, seed=seed), 0.0)
    x[:, 0] += 0.1
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _parameters(seed: int = 0) -> dict[str, oracle.FloatArray]:
    shapes = {"A": (HIDDEN, WORDS), "a": (HIDDEN,), "M": (LATENT, HIDDEN), "m": (LATENT,)}
    shapes |= {"S": (LATENT, HIDDEN), "s": (LATENT,), "D": (WORDS, LATENT), "d": (WORDS,)}
    return {name: _random(*shape, seed=seed + i) for i, (name, shape) in enumerate(shapes.items())}


# --- encoder ---


def test_word_shares_by_hand() -> None:
    shares = oracle.word_shares([[0.6, 0.8, 0.0], [0.0, 0.0, 0.0]])
    assert shares == pytest.approx(np.array([[3 / 7, 4 / 7, 0.0], [0.0, 0.0, 0.0]]), abs=1e-15)


def test_encode_by_hand() -> None:
    # A x + a = (0.6 + 0.4, 0.8 - 1.3) = (1, -0.5), so h = (1, 0); the second columns of M and S have no say.
    # mu = 3 tanh(3 artanh(1/2) / 3) = 3/2 and log s2 = 2 - 5 = -3.
    mu, log_variance = oracle.encode(
        [[0.6, 0.8]], np.eye(2), [0.4, -1.3], [[3 * math.atanh(0.5) - 1, 7.0]], [1.0], [[2.0, 9.0]], [-5.0]
    )
    assert mu == pytest.approx(np.array([[1.5]]), abs=1e-14)
    assert log_variance == pytest.approx(np.array([[-3.0]]), abs=1e-14)


def test_encode_maps_from_words_to_latents_by_rows() -> None:
    # H, V and Z differ, so a transposed matrix does not fit. Three hidden units copy word 2; Z adds them up.
    mu, log_variance = oracle.encode([[0.0, 1e-3]], [[0, 1]] * 3, [0] * 3, [[1, 1, 1]], [0], [[1, 2, 3]], [0])
    assert mu == pytest.approx(np.array([[3e-3]]), rel=1e-6)  # 3 tanh(u / 3) = u near zero
    assert log_variance == pytest.approx(np.array([[6e-3]]), rel=1e-12)


def test_latent_means_are_bounded_and_log_variances_are_not() -> None:
    large = np.full((1, 1), 50.0)
    mu, log_variance = oracle.encode([[1.0], [0.0]], large, [0.0], -large, [0.0], -large, [0.0])
    assert mu == pytest.approx(np.array([[-3.0], [0.0]]), abs=1e-12)
    assert log_variance == pytest.approx(np.array([[-2500.0], [0.0]]))


def test_lexical_view_has_unit_length_and_is_zero_without_words() -> None:
    parameters = _parameters()
    x = np.vstack([_rows(3), np.zeros((1, WORDS))])
    view = oracle.lexical_view(x, *(parameters[name] for name in "AaMm"))
    mu, _ = oracle.encode(x, *(parameters[name] for name in "AaMmSs"))
    assert np.abs(mu[3]).max() > 0.1  # the offsets alone are no latent
    assert (view[3] == 0.0).all()
    assert np.linalg.norm(view[:3], axis=1) == pytest.approx(np.ones(3), abs=1e-14)
    assert (view[:3] * mu[:3]).sum(axis=1) == pytest.approx(np.linalg.norm(mu[:3], axis=1), abs=1e-14)


def test_sample_latents_by_hand() -> None:
    # The standard deviation of log s2 = log 4 is 2: 1 + 2 (-1/2) = 0; of log s2 = 0 it is 1: -1 + 3 = 2.
    z = oracle.sample_latents([[1.0, -1.0]], [[math.log(4), 0.0]], [[-0.5, 3.0]])
    assert z == pytest.approx(np.array([[0.0, 2.0]]), abs=1e-14)


# --- decoder and reconstruction ---


def test_decoder_by_hand() -> None:
    # Logits (log 3 - log 2, 0, 0) + 2 (log 2 / 2, 0, 0) = (log 3, 0, 0): probabilities 3/5, 1/5, 1/5.
    log_q = oracle.decoder_log_probabilities([[2.0]], [[math.log(2) / 2], [0], [0]], [math.log(1.5), 0, 0])
    assert log_q == pytest.approx(np.log([[0.6, 0.2, 0.2]]), abs=1e-14)
    # Half of the words are the first, half the last.
    expected = -(math.log(0.6) + math.log(0.2)) / 2
    assert oracle.reconstruction_losses([[0.5, 0.0, 0.5]], log_q) == pytest.approx([expected], abs=1e-14)


def test_a_uniform_decoder_loses_the_log_of_the_vocabulary() -> None:
    p = oracle.word_shares(_rows(4))
    log_q = oracle.decoder_log_probabilities(_random(4, LATENT), np.zeros((WORDS, LATENT)), np.full(WORDS, 7.0))
    assert oracle.reconstruction_losses(p, log_q) == pytest.approx([math.log(WORDS)] * 4, abs=1e-12)


def test_reconstruction_is_least_for_the_own_words() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(WORDS), size=3)
    entropy = -(p * np.log(p)).sum(axis=1)
    # With D = 1 and d = 0 the latents are the logits.
    own = oracle.decoder_log_probabilities(np.log(p), np.eye(WORDS), np.zeros(WORDS))
    assert oracle.reconstruction_losses(p, own) == pytest.approx(entropy, abs=1e-12)
    other = oracle.decoder_log_probabilities(np.log(p) + 0.1 * _random(3, WORDS), np.eye(WORDS), np.zeros(WORDS))
    assert (np.array(oracle.reconstruction_losses(p, other)) > entropy).all()


# --- KL ---


def test_kl_by_hand() -> None:
    assert oracle.kl_losses(np.zeros((2, 3)), np.zeros((2, 3))) == [0.0, 0.0]
    # (1 + 1 - 1 - 0) / 2 = 1/2, and (4 + 4 - 1 - log 4) / 2 = 7/2 - log 2; dimensions add up.
    expected = 0.5 + 3.5 - math.log(2)
    assert oracle.kl_losses([[1.0, 2.0]], [[0.0, math.log(4)]]) == pytest.approx([expected], abs=1e-14)


@pytest.mark.parametrize(("mean", "log_variance"), [(0.7, -1.2), (-2.0, 0.8)])
def test_kl_is_the_integral_of_the_density_times_the_log_ratio(mean: float, log_variance: float) -> None:
    deviation = math.exp(log_variance / 2)
    t, width = np.linspace(mean - 12 * deviation, mean + 12 * deviation, 20_001, retstep=True)
    log_density = -((t - mean) ** 2) / (2 * deviation**2) - math.log(deviation)  # both without log sqrt(2 pi)
    density = np.exp(log_density) / math.sqrt(2 * math.pi)
    integral = float((density * (log_density + t**2 / 2)).sum() * width)
    assert oracle.kl_losses([[mean]], [[log_variance]]) == pytest.approx([integral], abs=1e-9)


# --- contrast ---


def test_contrast_of_two_pairs_by_hand() -> None:
    # Temperature 1/2: a cosine of 1 counts e^2, of 0 it counts 1. Unit rows: a = (1, 0), b = (0, 1), and their
    # neighbours a' = (0, 1), b' = (0, 1).
    # a : positive a' 1;   others b 1, b' 1     -> log 3
    # b : positive b' e^2; others a 1, a' e^2   -> log(2 e^2 + 1) - 2
    # a': positive a 1;    others b e^2, b' e^2 -> log(2 e^2 + 1)
    # b': positive b e^2;  others a 1, a' e^2   -> log(2 e^2 + 1) - 2
    texts, neighbours = [[2.0, 0.0], [0.0, 3.0]], [[0.0, 1.0], [0.0, 0.5]]
    big = math.log(2 * math.e**2 + 1)
    losses = oracle.contrast_losses(texts, neighbours)
    assert losses == pytest.approx([math.log(3), big - 2, big, big - 2], abs=1e-14)
    assert oracle.pair_mean(losses) == pytest.approx((math.log(3) + 3 * big - 4) / 4, abs=1e-14)
    expected = (3 * math.log(3) + 3 * big + 2 * (big - 2)) / 8
    assert oracle.pair_mean(losses, [3, 1]) == pytest.approx(expected, abs=1e-14)


def test_contrast_of_texts_that_are_their_own_neighbours() -> None:
    # The positive has cosine 1, the two negatives 0: log(e^2 + 2) - 2.
    losses = oracle.contrast_losses(np.eye(2), np.eye(2))
    assert losses == pytest.approx([math.log(math.e**2 + 2) - 2] * 4, abs=1e-14)


@pytest.mark.parametrize("pairs", [1, 2, 6])
def test_contrast_of_equal_rows_is_the_log_of_the_other_rows(pairs: int) -> None:
    same = np.ones((pairs, 3))
    assert oracle.contrast_losses(same, same) == pytest.approx([math.log(2 * pairs - 1)] * 2 * pairs, abs=1e-12)


def test_contrast_equals_the_loss_of_sccl() -> None:
    first, second = _random(4, 3), _random(4, 3, seed=1)
    expected = sccl_oracle.nt_xent_anchor_losses(first, second, 0.5)
    assert oracle.contrast_losses(first, second) == pytest.approx(expected, abs=1e-13)


# --- weights ---


def _losses_of_weights(weights: list[float] | None, index: list[int]) -> oracle.Losses:
    noise = _random(3, 2, LATENT, seed=5)[index]  # pair by pair, so that a repeated pair repeats its noise
    noise = np.concatenate([noise[:, 0], noise[:, 1]])
    return oracle.batch_losses(_rows(3)[index], _rows(3, seed=1)[index], _parameters(), noise, weights)


def test_a_weight_is_a_repeated_row_except_among_the_negatives() -> None:
    weighted = _losses_of_weights([1, 3, 1], [0, 1, 2])
    repeated = _losses_of_weights(None, [0, 1, 1, 1, 2])
    plain = _losses_of_weights(None, [0, 1, 2])
    for name in ("reconstruction", "kl"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), abs=1e-13)
        assert abs(getattr(weighted, name) - getattr(plain, name)) > 1e-3
    # A row that is repeated is also one more negative of all the others; a weight is not.
    assert repeated.contrast > weighted.contrast + 0.1
    assert _losses_of_weights([4, 4, 4], [0, 1, 2]) == pytest.approx(plain, abs=1e-13)


def test_both_rows_of_a_pair_have_the_weight_of_its_text() -> None:
    # Texts 1 and 2, then their neighbours: (3 * 1 + 1 * 10 + 3 * 100 + 1 * 1000) / 8.
    assert oracle.pair_mean([1.0, 10.0, 100.0, 1000.0], [3, 1]) == pytest.approx(1313 / 8)


# --- total ---


def test_the_total_by_hand() -> None:
    # Two words, two texts of one word each, their own neighbours. The encoder is the identity up to the bound and
    # S = 0, s = log 4, so with u = 3 tanh(1/3): mu = (u, 0) or (0, u), and each row's KL is
    # (u^2 + 4 - 1 - log 4) / 2 + (4 - 1 - log 4) / 2. The contrast is that of orthogonal pairs. With D = 1, d = 0 and
    # noise (log 3 / 2, 0) for the text of word 1, its logits are (u + log 3, 0); without noise (u, 0).
    u = 3 * math.tanh(1 / 3)
    parameters = {"A": np.eye(2), "a": np.zeros(2), "M": np.eye(2), "m": np.zeros(2)}
    parameters |= {"S": np.zeros((2, 2)), "s": np.full(2, math.log(4)), "D": np.eye(2), "d": np.zeros(2)}
    noise = np.zeros((4, 2))
    noise[0, 0] = math.log(3) / 2
    losses = oracle.batch_losses(np.eye(2), np.eye(2), parameters, noise)
    reconstruction = (math.log(1 + math.exp(-u) / 3) + 3 * math.log(1 + math.exp(-u))) / 4
    kl = (u**2 + 6) / 2 - math.log(4)
    contrast = math.log(math.e**2 + 2) - 2
    expected = (reconstruction, kl, contrast, reconstruction + kl / 10 + 10 * contrast)
    assert tuple(losses) == pytest.approx(expected, abs=1e-13)


def test_a_row_without_words_is_not_trained_on() -> None:
    empty, noise = np.zeros((1, WORDS)), np.zeros((2, LATENT))
    for texts, neighbours in ((empty, _rows(1)), (_rows(1), empty)):
        with pytest.raises(ValueError, match="without a known word"):
            oracle.batch_losses(texts, neighbours, _parameters(), noise)


# --- gradients ---


def test_gradients_by_the_decoder_are_those_of_a_softmax() -> None:
    texts, neighbours, parameters = _rows(2), _rows(2, seed=1), _parameters()
    noise, weights = _random(4, LATENT, seed=5), np.array([3.0, 1.0, 3.0, 1.0])
    gradients = oracle.total_gradients(texts, neighbours, parameters, noise, [3, 1])
    assert {name: value.shape for name, value in gradients.items()} == {
        name: value.shape for name, value in parameters.items()
    }
    x = np.concatenate([texts, neighbours])
    z = oracle.sample_latents(*oracle.encode(x, *(parameters[name] for name in "AaMmSs")), noise)
    q = np.exp(oracle.decoder_log_probabilities(z, parameters["D"], parameters["d"]))
    error = weights[:, None] / 8 * (q - oracle.word_shares(x))  # dL/dlogits
    assert gradients["d"] == pytest.approx(error.sum(axis=0), abs=1e-7)
    assert gradients["D"] == pytest.approx(error.T @ z, abs=1e-7)


def test_gradients_by_the_variance_without_a_decoder_are_those_of_the_kl_term() -> None:
    # With D = 0 the latents have no say in L_rec: dL/ds = 0.1 mean (exp(log s2) - 1) / 2.
    texts, neighbours = _rows(2), _rows(2, seed=1)
    parameters = {**_parameters(), "D": np.zeros((WORDS, LATENT))}
    gradients = oracle.total_gradients(texts, neighbours, parameters, _random(4, LATENT), None)
    x = np.concatenate([texts, neighbours])
    _, log_variance = oracle.encode(x, *(parameters[name] for name in "AaMmSs"))
    assert gradients["s"] == pytest.approx(0.1 * (np.exp(log_variance) - 1).mean(axis=0) / 2, abs=1e-7)


# --- pseudo-labels ---

CLUSTERS = 4


def _shares(count: int, seed: int = 0) -> oracle.FloatArray:
    """Pseudo-labels: rows that sum to one."""
    return np.random.default_rng(seed).dirichlet(np.ones(CLUSTERS), size=count)


def _label_case() -> tuple[oracle.FloatArray, oracle.FloatArray, oracle.FloatArray]:
    """Latent means, centres and pseudo-labels of three texts."""
    return _random(3, LATENT, seed=7), _random(CLUSTERS, LATENT, seed=8), _shares(3, seed=9)


def test_label_loss_by_hand() -> None:
    # Centres (1, 0) and (0, 1). The first text lies at cosines 1 and 0, so its Q is (e^10, 1) / (e^10 + 1); the second
    # at 3/5 and 4/5, so its Q is (e^6, e^8) / (e^6 + e^8) = (1, e^2) / (1 + e^2). Lengths 2, 5 and 3 have no say.
    mu, centers = [[2.0, 0.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 3.0]]
    q = [[1 / (1 + math.exp(-10)), 1 / (1 + math.exp(10))], [1 / (1 + math.e**2), 1 / (1 + math.exp(-2))]]
    assert oracle.label_probabilities(mu, centers) == pytest.approx(np.array(q), rel=1e-13)
    # Labels (1/2, 1/2): log(e^10 + 1) - 5. Labels (1/4, 3/4): log(1 + e^2) - 3/2.
    first, second = math.log(math.exp(10) + 1) - 5, math.log(1 + math.e**2) - 1.5
    targets = [[0.5, 0.5], [0.25, 0.75]]
    assert oracle.label_loss(mu, centers, targets, [1, 1], [1, 1]) == pytest.approx((first + second) / 2, rel=1e-13)
    # Trust 1/2 and 1/4 of texts that occur 3 times and twice: factors 3/2 and 1/2.
    expected = (3 * first + second) / 4
    assert oracle.label_loss(mu, centers, targets, [0.5, 0.25], [3, 2]) == pytest.approx(expected, rel=1e-13)


def test_label_loss_of_equal_cosines_is_the_log_of_the_clusters() -> None:
    mu, _, targets = _label_case()
    same = np.ones((CLUSTERS, LATENT))
    assert oracle.label_loss(mu, same, targets, [1, 0.5, 0.1]) == pytest.approx(math.log(CLUSTERS), abs=1e-12)


def test_label_loss_is_least_for_the_own_probabilities() -> None:
    mu, centers, targets = _label_case()
    q, ones = oracle.label_probabilities(mu, centers), np.ones(3)
    assert q.sum(axis=1) == pytest.approx(ones, abs=1e-14)
    entropy = -(q * np.log(q)).sum(axis=1).mean()
    assert oracle.label_loss(mu, centers, q, ones) == pytest.approx(entropy, abs=1e-12)
    by_mu, by_centers = oracle.label_gradients(mu, centers, q, ones)
    assert np.abs(by_mu).max() < 1e-7
    assert np.abs(by_centers).max() < 1e-7
    assert np.abs(oracle.label_gradients(mu, centers, targets, ones)[0]).max() > 1e-2


def test_label_loss_does_not_depend_on_lengths() -> None:
    mu, centers, targets = _label_case()
    trust, weights = [1.0, 0.3, 0.6], [1, 2, 4]
    expected = oracle.label_loss(mu, centers, targets, trust, weights)
    longer, wider = mu * [[0.01], [1.0], [300.0]], centers * [[5.0], [0.2], [1.0], [40.0]]
    assert oracle.label_loss(longer, centers, targets, trust, weights) == pytest.approx(expected, rel=1e-12)
    assert oracle.label_loss(mu, wider, targets, trust, weights) == pytest.approx(expected, rel=1e-12)
    # So the gradients have no part along the vectors.
    by_mu, by_centers = oracle.label_gradients(mu, centers, targets, trust, weights)
    assert (by_mu * mu).sum(axis=1) == pytest.approx(np.zeros(3), abs=1e-8)
    assert (by_centers * centers).sum(axis=1) == pytest.approx(np.zeros(CLUSTERS), abs=1e-8)


def test_a_text_with_trust_zero_counts_next_to_nothing() -> None:
    mu, centers, targets = _label_case()
    alone = oracle.label_loss(mu[:2], centers, targets[:2], [1.0, 0.5])
    third = oracle.label_loss(mu[2:], centers, targets[2:], [1.0])
    assert abs(third - alone) > 0.1
    loss = oracle.label_loss(mu, centers, targets, [1.0, 0.5, 0.0])
    assert loss == pytest.approx(alone, abs=1e-5)
    # Next to nothing is one part in a million of a trusted text, and less trust than that is the same.
    assert loss == pytest.approx((1.5 * alone + 1e-6 * third) / (1.5 + 1e-6), abs=1e-14)
    assert loss == oracle.label_loss(mu, centers, targets, [1.0, 0.5, 1e-7])
    by_mu, _ = oracle.label_gradients(mu, centers, targets, [1.0, 0.5, 0.0])
    assert np.abs(by_mu[2]).max() < 1e-4
    assert np.abs(by_mu[:2]).max() > 1e-2


def test_all_trust_zero_is_all_trust_one() -> None:
    mu, centers, targets = _label_case()
    weights = [1, 5, 2]
    expected = oracle.label_loss(mu, centers, targets, np.ones(3), weights)
    assert oracle.label_loss(mu, centers, targets, np.zeros(3), weights) == pytest.approx(expected, rel=1e-12)
    # Only the ratios of trust matter, as long as none of it is below the least.
    trust = np.array([1.0, 0.2, 0.6])
    expected = oracle.label_loss(mu, centers, targets, trust, weights)
    assert oracle.label_loss(mu, centers, targets, trust / 50, weights) == pytest.approx(expected, rel=1e-12)


def test_a_weight_of_a_pseudo_label_is_a_repeated_text() -> None:
    mu, centers, targets = _label_case()
    trust, index = np.array([0.9, 0.4, 0.0]), [0, 1, 1, 1, 2, 2]
    weighted = oracle.label_loss(mu, centers, targets, trust, [1, 3, 2])
    repeated = oracle.label_loss(mu[index], centers, targets[index], trust[index])
    assert weighted == pytest.approx(repeated, rel=1e-13)
    assert abs(weighted - oracle.label_loss(mu, centers, targets, trust)) > 1e-3
    by_mu, by_centers = oracle.label_gradients(mu, centers, targets, trust, [1, 3, 2])
    of_rows, of_centers = oracle.label_gradients(mu[index], centers, targets[index], trust[index])
    assert by_mu[1] == pytest.approx(of_rows[1:4].sum(axis=0), abs=1e-8)
    assert by_centers == pytest.approx(of_centers, abs=1e-8)


def test_label_gradients_are_those_of_a_softmax_of_cosines() -> None:
    mu, centers, targets = _label_case()
    factors = np.array([1.0 * 2, 0.3 * 1, 0.6 * 4])
    by_mu, by_centers = oracle.label_gradients(mu, centers, targets, [1.0, 0.3, 0.6], [2, 1, 4])
    of_mu, of_centers = (np.linalg.norm(rows, axis=1, keepdims=True) for rows in (mu, centers))
    cosines = (mu / of_mu) @ (centers / of_centers).T
    q = oracle.label_probabilities(mu, centers)
    error = (factors / factors.sum())[:, None] * (q - targets) / 0.1  # dL/dcos
    # dcos/dmu = (c / |c| - cos mu / |mu|) / |mu|, and likewise for c.
    expected = (error @ (centers / of_centers) - (error * cosines).sum(axis=1, keepdims=True) * mu / of_mu) / of_mu
    assert by_mu == pytest.approx(expected, abs=1e-7)
    along = (error * cosines).sum(axis=0)[:, None] * centers / of_centers
    assert by_centers == pytest.approx((error.T @ (mu / of_mu) - along) / of_centers, abs=1e-7)
