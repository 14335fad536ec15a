"""The lexical view and its clusters: what it learns, which texts are positives, what is saved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import topic_texts
from reference.lexical_oracle import (
    CONTRAST_WEIGHT,
    KL_WEIGHT,
    LABEL_WEIGHT,
    TEMPERATURE,
    batch_losses,
    encode,
    label_gradients,
    label_loss,
    lexical_view,
    total_gradients,
)
from scipy import sparse

from coterie import LexicalClusters
from coterie.errors import InputError
from coterie.methods.lexical.network import (
    DenseRows,
    LexicalConfig,
    LexicalNetwork,
    PseudoLabelBatch,
    RowBatch,
    SparseRows,
    drop,
)
from coterie.methods.lexical.view import LexicalView, Positives, PseudoLabels, fit_words
from coterie.training.history import History
from coterie.training.vectors import VectorTrainer

SMALL = LexicalConfig(hidden=16, dimension=8, epochs=1, min_steps=30, batch_size=16)
TEXTS, TOPICS = topic_texts(60)
ONCE = np.ones(len(TEXTS), dtype=np.int64)


def _cosines(vectors: np.ndarray, groups: list[str]) -> tuple[float, float]:
    """Return the mean cosine of texts of the same group and of different groups."""
    cosines = vectors @ vectors.T
    same = np.equal.outer(groups, groups)
    return float(cosines[same & ~np.eye(len(groups), dtype=bool)].mean()), float(cosines[~same].mean())


def test_training_separates_topics() -> None:
    history = History()
    config = LexicalConfig(hidden=32, dimension=8, min_steps=100, batch_size=32)
    vectors = LexicalView.fit(TEXTS, ONCE, config=config, history=history).encode(TEXTS)
    within, between = _cosines(vectors, TOPICS)
    assert within > between + 0.5
    for term in ("loss", "reconstruction", "contrast"):
        values = history.term(term)
        assert len(values) == 100
        assert np.mean(values[-10:]) < np.mean(values[:10]), term


def test_few_texts_are_learned_by_heart() -> None:
    """Without dropout, divergence and contrast the decoder predicts the words of each text."""
    history = History()
    config = LexicalConfig(min_steps=200, dropout=0, kl_weight=0, contrast_weight=0, neighbours=1)
    texts = ["late parcel", "lost parcel", "new password", "old password"]
    view = LexicalView.fit(texts, np.ones(4, dtype=np.int64), config=config, history=history)
    shares = view.words.encode(texts).toarray()
    shares /= shares.sum(axis=1, keepdims=True)
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1).mean()
    assert history.term("loss")[0] > entropy + 0.5
    assert np.mean(history.term("loss")[-20:]) == pytest.approx(entropy, abs=0.1)


def test_clusters_are_the_topics() -> None:
    model = LexicalClusters(3, hidden=32, dimension=8, min_steps=150).fit(TEXTS)
    assert len(set(zip(TOPICS, model.labels_.tolist(), strict=True))) == 3
    assert {"training", "clustering"} <= set(model.timings_)


def test_vectors_have_unit_length_and_unknown_texts_are_zero() -> None:
    view = LexicalView.fit(TEXTS, ONCE, config=SMALL)
    vectors = view.encode([TEXTS[0], "xyzzy", "?!", TEXTS[1]])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1], atol=1e-6)
    assert view.encode([]).shape == (0, 8)
    alone = np.concatenate([view.encode([text], at_a_time=1) for text in TEXTS])
    np.testing.assert_array_equal(view.encode(TEXTS, at_a_time=1), alone)
    np.testing.assert_allclose(view.encode(TEXTS), alone, atol=1e-6)


def test_texts_without_a_known_word_change_nothing_for_the_others() -> None:
    view = LexicalView.fit(TEXTS, ONCE, config=SMALL)
    more = [TEXTS[0], "?!", *TEXTS[1:], "a b c"]
    neighbours = np.zeros((len(more), 1), dtype=np.int64)
    other = LexicalView.fit(more, np.ones(len(more), dtype=np.int64), config=SMALL)
    # The weights of words depend on the number of texts; which words there are does not.
    assert other.words.vocabulary == view.words.vocabulary
    assert not other.encode(["?!"]).any()
    model = LexicalClusters(2, hidden=16, dimension=8, min_steps=5).fit(more)
    assert any("2 distinct texts hold none of the" in note for note in model.notes_)
    # A neighbour without a known word is never a positive.
    rows = other.words.encode(more).tocsr()
    known = np.flatnonzero(rows.getnnz(axis=1))
    neighbours[:] = 1
    positives = Positives.build(rows[known], known, neighbours, 3, torch.device("cpu"))
    without = Positives.build(rows[known], known, None, 3, torch.device("cpu"))
    assert torch.equal(positives.numbers, without.numbers)


def test_stop_words_are_used_where_there_are_no_others() -> None:
    texts = ["who are you", "who is it", "where were they", "where are they"]
    counts = np.ones(4, dtype=np.int64)
    assert "who" in fit_words(texts, counts, 2048).vocabulary
    assert "who" not in fit_words([*texts, "late parcel"], np.ones(5, dtype=np.int64), 2048).vocabulary
    assert np.isfinite(LexicalView.fit(texts, counts, config=SMALL).encode(texts)).all()
    with pytest.raises(InputError, match="no words"):
        LexicalView.fit(["?!", "a"], counts[:2], config=SMALL)


def test_the_most_frequent_words_count_repeated_texts() -> None:
    counts = np.array([1, 9, 1])
    assert set(fit_words(["red apple", "green pear", "red plum"], counts, 2).vocabulary) == {"green", "pear"}


def test_the_seed_decides() -> None:
    first, again = (LexicalView.fit(TEXTS, ONCE, seed=3, config=SMALL).encode(TEXTS) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, LexicalView.fit(TEXTS, ONCE, seed=4, config=SMALL).encode(TEXTS), atol=1e-3)


def _sampled(positives: Positives, row: int, times: int = 400) -> dict[int, int]:
    generator = torch.Generator().manual_seed(0)
    drawn = positives.sample(torch.full((times,), row), generator).tolist()
    return {value: drawn.count(value) for value in set(drawn)}


def test_positives_are_the_nearest_texts_that_share_a_word() -> None:
    texts = ["late parcel", "parcel lost", "parcel broken", "password reset", "password forgotten", "hello"]
    words = fit_words(texts, np.ones(6, dtype=np.int64), 100)
    rows, cpu = words.encode(texts).tocsr(), torch.device("cpu")
    positives = Positives.build(rows, np.arange(6), None, 4, cpu)
    assert set(_sampled(positives, 0)) == {1, 2}
    assert set(_sampled(positives, 3)) == {4}
    assert set(_sampled(positives, 5)) == {5}, "a text without neighbours is its own positive"
    assert set(_sampled(Positives.build(rows, np.arange(6), None, 1, cpu), 0)) <= {1, 2}
    one = Positives.build(rows[:1], np.arange(1), None, 4, cpu)
    assert set(_sampled(one, 0)) == {0}


def test_semantic_neighbours_are_positives_too() -> None:
    texts = ["late parcel", "parcel lost", "?!", "password reset", "hello"]
    rows = fit_words(texts, np.ones(5, dtype=np.int64), 100).encode(texts).tocsr()
    known = np.flatnonzero(rows.getnnz(axis=1))
    semantic = np.array([[3, 2], [0, 3], [0, 1], [4, 2], [2, 3]])
    positives = Positives.build(rows[known], known, semantic, 2, torch.device("cpu"))
    # Rows of the texts that are trained on: 0, 1, 2 (was 3), 3 (was 4).
    share = _sampled(positives, 0)
    assert set(share) == {1, 2} and abs(share[1] - share[2]) < 100
    assert set(_sampled(positives, 2)) == {3}
    assert set(_sampled(positives, 3)) == {2}


def test_semantic_neighbours_join_texts_without_a_common_word() -> None:
    texts = [f"{word} {i}{i}" for i in range(10, 22) for word in ("apple", "pear", "car", "truck")]
    kinds = ["fruit" if i % 4 < 2 else "vehicle" for i in range(len(texts))]
    counts = np.ones(len(texts), dtype=np.int64)
    config = LexicalConfig(hidden=32, dimension=8, min_steps=80, batch_size=24)
    neighbours = np.array([[i ^ 1] for i in range(len(texts))])
    alone = _cosines(LexicalView.fit(texts, counts, config=config).encode(texts), kinds)
    joined = LexicalView.fit(texts, counts, semantic_neighbours=neighbours, config=config).encode(texts)
    within, between = _cosines(joined, kinds)
    assert within - between > alone[0] - alone[1] + 0.1


def test_the_state_is_the_view() -> None:
    view = LexicalView.fit(TEXTS, ONCE, config=SMALL)
    state = view.state()
    assert all(array.dtype.kind in "fu" for array in state.values())
    again = LexicalView.restore({name: array.copy() for name, array in state.items()})
    np.testing.assert_array_equal(again.encode(TEXTS), view.encode(TEXTS))
    accented = LexicalView.fit(["Äpfel süß", "日本語 テキスト", "Äpfel rot"], ONCE[:3], config=SMALL)
    assert LexicalView.restore(accented.state()).words.vocabulary == accented.words.vocabulary


def _batch(rows: np.ndarray) -> RowBatch:
    """Return all of some dense rows, in float64."""
    table = SparseRows(sparse.csr_matrix(rows), torch.device("cpu"))
    batch = table.batch(torch.arange(len(rows)))
    values = torch.from_numpy(rows[rows > 0])
    shares = torch.from_numpy((rows / rows.sum(axis=1, keepdims=True))[rows > 0])
    torch.testing.assert_close(batch.values.double(), values)
    torch.testing.assert_close(batch.shares.double(), shares)
    return replace(batch, values=values, shares=shares)


def test_dense_rows_are_the_sparse_ones() -> None:
    table = sparse.csr_matrix(np.concatenate(_pairs()))
    rows, weight = torch.tensor([4, 0, 4]), torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    dense, sparsely = (form(table, torch.device("cpu")).batch(rows) for form in (DenseRows, SparseRows))
    torch.testing.assert_close(dense.products(weight), sparsely.products(weight))
    torch.testing.assert_close(dense.word_shares(), sparsely.word_shares())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_recorded_steps_train_as_plain_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = PseudoLabels(np.eye(2, dtype=np.float32)[[0, 0, 1, 1] * 5], np.ones(20, dtype=np.float32))
    texts = [f"{text} {number}" for number in range(5) for text in TEXTS[:4]]
    counts, kept = np.arange(1, 21), History()

    def fit(history: History) -> np.ndarray:
        config = replace(SMALL, batch_size=8, min_steps=30)
        view = LexicalView.fit(texts, counts, pseudo_labels=labels, device="cuda", config=config, history=history)
        return view.encode(texts)

    recorded = fit(kept)
    assert len(kept.steps) == 30
    monkeypatch.setattr(VectorTrainer, "_step_function", lambda *args: _STEP_FUNCTION(*args[:3], None))
    np.testing.assert_allclose(recorded, fit(History()), atol=1e-3)


_STEP_FUNCTION = VectorTrainer._step_function


def _pairs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return TF-IDF rows of three texts and of their neighbours, all with a word."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(0.1, 1, (6, 7)) * (generator.random((6, 7)) < 0.5)
    rows[:, 3] += 0.2
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows[:3], rows[3:]


def _network(n_words: int = 7) -> LexicalNetwork:
    return LexicalNetwork(n_words, 5, 4, torch.Generator().manual_seed(1)).double()


def _parameters(network: LexicalNetwork) -> dict[str, torch.Tensor]:
    """Return the parameters by their names in the equations; a tensor of the first layer is words x hidden."""
    return {
        "A": network.first_weight,
        "a": network.first_bias,
        "M": network.mean.weight,
        "m": network.mean.bias,
        "S": network.log_variance.weight,
        "s": network.log_variance.bias,
        "D": network.decoder.weight,
        "d": network.decoder.bias,
    }


@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 4, 2]])
def test_losses_and_gradients_in_float64(weights: list[int]) -> None:
    texts, neighbours = _pairs()
    network = _network()
    config = LexicalConfig(dropout=0.0, kl_weight=KL_WEIGHT, contrast_weight=CONTRAST_WEIGHT, temperature=TEMPERATURE)
    # The same generator draws dropout first, then the noise of the latents.
    generator = torch.Generator().manual_seed(5)
    torch.rand((6, 5), generator=generator)
    noise = torch.randn((6, 4), generator=generator, dtype=torch.float64).numpy()
    counts = torch.tensor(weights, dtype=torch.float64)
    terms = network.loss(_batch(np.concatenate([texts, neighbours])), counts, config, torch.Generator().manual_seed(5))

    arrays = {name: value.detach().numpy() for name, value in _parameters(network).items()}
    arrays["A"] = arrays["A"].T
    expected = batch_losses(texts, neighbours, arrays, noise, weights)
    found = [float(terms.named[name].detach()) for name in ("reconstruction", "divergence", "contrast", "loss")]
    np.testing.assert_allclose(found, expected, rtol=1e-9)

    gradients = torch.autograd.grad(terms.total, list(_parameters(network).values()))
    numerical = total_gradients(texts, neighbours, arrays, noise, weights)
    for name, gradient in zip(_parameters(network), gradients, strict=True):
        exact = numerical[name].T if name == "A" else numerical[name]
        np.testing.assert_allclose(gradient.numpy(), exact, atol=1e-6, err_msg=name)


def _pseudo_labels(trust: list[float]) -> PseudoLabelBatch:
    """Return pseudo-labels of three texts in float64, of four clusters of latent vectors with four dimensions."""
    generator = np.random.default_rng(3)
    centers, targets = generator.normal(size=(4, 4)), generator.dirichlet(np.ones(4), size=3)
    return PseudoLabelBatch(
        torch.from_numpy(centers).requires_grad_(),
        torch.from_numpy(targets),
        torch.tensor(trust, dtype=torch.float64),
    )


@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 4, 2]])
@pytest.mark.parametrize("trust", [[1.0, 1.0, 1.0], [0.9, 0.0, 0.3], [0.0, 0.0, 0.0]])
def test_the_loss_of_pseudo_labels_in_float64(trust: list[float], weights: list[int]) -> None:
    labels = _pseudo_labels(trust)
    means = torch.from_numpy(np.random.default_rng(4).normal(size=(3, 4))).requires_grad_()
    loss = labels.loss(means, torch.tensor(weights, dtype=torch.float64))
    arrays = (means.detach().numpy(), labels.centers.detach().numpy(), labels.targets.numpy(), trust, weights)
    # The logarithms of the softmax are computed in float32.
    np.testing.assert_allclose(float(loss.detach()), label_loss(*arrays), rtol=1e-6)
    gradients = torch.autograd.grad(loss, [means, labels.centers])
    for name, gradient, exact in zip(("means", "centers"), gradients, label_gradients(*arrays), strict=True):
        np.testing.assert_allclose(gradient.numpy(), exact, rtol=1e-5, atol=1e-8, err_msg=name)


def test_pseudo_labels_are_those_of_the_texts_and_not_of_their_neighbours() -> None:
    texts, neighbours = _pairs()
    network, labels, weights = _network(), _pseudo_labels([0.9, 0.2, 0.5]), [1, 4, 2]
    terms = network.loss(
        _batch(np.concatenate([texts, neighbours])),
        torch.tensor(weights, dtype=torch.float64),
        LexicalConfig(dropout=0.0),
        torch.Generator().manual_seed(5),
        labels,
    )
    arrays = {name: value.detach().numpy() for name, value in _parameters(network).items()}
    arrays["A"] = arrays["A"].T
    means, _ = encode(texts, *(arrays[name] for name in "AaMmSs"))
    centers, targets, trust = (value.detach().numpy() for value in (labels.centers, labels.targets, labels.trust))
    expected = label_loss(means, centers, targets, trust, weights)
    np.testing.assert_allclose(float(terms.named["labels"].detach()), expected, rtol=1e-6)


def test_the_loss_of_pseudo_labels_is_added_to_the_others() -> None:
    batch, network, labels = _batch(np.concatenate(_pairs())), _network(), _pseudo_labels([0.9, 0.2, 0.5])
    counts = torch.tensor([1, 4, 2], dtype=torch.float64)
    generators = [torch.Generator().manual_seed(5) for _ in range(2)]
    config = LexicalConfig(dropout=0.2)
    without = network.loss(batch, counts, config, generators[0])
    terms = network.loss(batch, counts, config, generators[1], labels)
    assert torch.equal(generators[0].get_state(), generators[1].get_state())
    assert set(terms.named) - set(without.named) == {"labels"}
    for name in ("reconstruction", "divergence", "contrast"):
        assert torch.equal(terms.named[name], without.named[name]), name
    assert float(terms.named["labels"].detach()) > 0.1
    added = without.total + LABEL_WEIGHT * terms.named["labels"]
    torch.testing.assert_close(terms.total, added, rtol=1e-12, atol=0)
    parameters = [*network.parameters(), labels.centers]
    found, expected = (torch.autograd.grad(total, parameters, retain_graph=True) for total in (terms.total, added))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_the_vector_of_a_text_in_float64() -> None:
    view = LexicalView.fit(TEXTS, ONCE, config=SMALL)
    texts = [*TEXTS[:4], "xyzzy"]
    arrays = {name: value.detach().double().numpy() for name, value in _parameters(view.network).items()}
    rows = view.words.encode(texts).toarray()
    expected = lexical_view(rows, arrays["A"].T, arrays["a"], arrays["M"], arrays["m"])
    np.testing.assert_allclose(view.encode(texts), expected, atol=1e-5)


def test_dropout_keeps_the_mean() -> None:
    found = drop(torch.ones(300, 100), 0.2, torch.Generator().manual_seed(0))
    assert float((found == 0).float().mean()) == pytest.approx(0.2, abs=0.01)
    assert float(found.mean()) == pytest.approx(1, abs=0.02)
