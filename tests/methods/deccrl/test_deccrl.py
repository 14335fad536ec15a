"""DECCRL as an estimator, on a tiny encoder: its start, its topics, its settings, its folder."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts

import coterie
import coterie.methods.deccrl.method as deccrl_module
from coterie import DECCRL, FrozenEncoder, TrainingConfig
from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import InputError, SettingError
from coterie.methods.deccrl.method import VARIANTS, DECCRLObjective, principal_components
from coterie.methods.deccrl.topics import EmbeddedTopics, Topic, WordCounts
from coterie.training.objective import Batch
from coterie.training.views import Views

TEXTS, _ = topic_texts(30)
REPEATED = [*TEXTS, *TEXTS[:5], TEXTS[0]]
STILL = {"max_steps": 1, "learning_rate": 1e-12, "head_learning_rate": 1e-12}  # as good as untrained
FORMS = pytest.mark.parametrize(
    ("variant", "augmentation"), [(v, a) for v in VARIANTS for a in ("word_deletion", "virtual")]
)


def _method(folder: Path, *, n_clusters: int = 3, training: dict[str, Any] | None = None, **settings: Any) -> DECCRL:
    chosen = {"batch_size": 10, "max_epochs": 2, "precision": "float32", "learning_rate": 3e-3, **(training or {})}
    settings = {"topic_steps": 0, **settings}
    return DECCRL(n_clusters, encoder=str(folder), device="cpu", training=TrainingConfig(**chosen), **settings)


def _keep_objective(monkeypatch: pytest.MonkeyPatch) -> list[DECCRLObjective]:
    """The trained objective of every fit."""
    kept: list[DECCRLObjective] = []
    real = DECCRL._conclude

    def conclude(self: DECCRL, start: Any, objective: Any, *rest: Any) -> Any:
        kept.append(objective)
        return real(self, start, objective, *rest)

    monkeypatch.setattr(DECCRL, "_conclude", conclude)
    return kept


def _expected_vocabulary(texts: list[str], least: int = 3, most: float = 0.5) -> list[str]:
    """Counted by hand; the texts are words with single spaces."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    texts_with = Counter(word for text in texts for word in set(text.split()))
    kept = [word for word, n in texts_with.items() if least <= n <= most * len(texts)]
    return sorted(set(kept) - ENGLISH_STOP_WORDS)


def _distances(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)


# --- Training ---


@FORMS
def test_every_form_trains_and_keeps_its_terms(tiny_encoder: Path, variant: str, augmentation: str) -> None:
    model = _method(tiny_encoder, variant=variant, augmentation=augmentation).fit(TEXTS)
    extra = {"topics": {"topics"}, "latent": {"latent"}, "none": set()}[variant]
    assert list(model.history_.stop_reasons) == ["deccrl"]
    assert len(model.history_.steps) == 6
    for record in model.history_.steps:
        assert set(record) - {"stage", "epoch", "step", "loss"} == {"contrast", "cluster"} | extra
    assert np.array_equal(model.predict(TEXTS), model.labels_)
    assert np.array_equal(model.predict_proba(TEXTS).argmax(axis=1), model.labels_)
    assert np.array_equal(model.head_labels_, model.labels_)
    assert ("topics_" in vars(model)) == (variant == "topics")


@FORMS
def test_gradient_reaches_every_trainable_parameter(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, variant: str, augmentation: str
) -> None:
    kept = _keep_objective(monkeypatch)
    method = _method(tiny_encoder, variant=variant, augmentation=augmentation, word_vectors="learned").fit(TEXTS)
    (objective,), encoder = kept, method.encoder_
    tokens = encoder.tokenize(TEXTS)
    views = Views(encoder, TEXTS, tokens, method._augmenters(), seed=0)
    views.resample(objective.views, 0)
    encoder.train()
    objective.train()
    objective.zero_grad(set_to_none=True)
    encoder.zero_grad(set_to_none=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        flat = views.rows(objective.views, np.arange(30))
        sentences, _ = encoder.encode_rows(views.tokens, flat, torch.float32, 10_000)
        terms = objective.loss(Batch(sentences.split(30), torch.arange(30), torch.ones(30)))
    # The last term, alone, goes through FC_e into the encoder too.
    list(terms.named.values())[-1].backward(retain_graph=True)
    assert encoder.projection is not None and encoder.projection.weight.grad.abs().max() > 1e-8
    assert encoder.model.get_input_embeddings().weight.grad.abs().max() > 1e-8  # type: ignore[operator]
    terms.total.backward()
    for name, parameter in [*encoder.named_parameters(prefix="encoder"), *objective.named_parameters()]:
        if ".pooler." in name:
            continue
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
        # Attention does not see a bias that is the same for all keys, and a softmax over words none over topics.
        if not name.endswith("attention.self.key.bias"):
            assert parameter.grad.abs().max() > 1e-9, name


def test_training_moves_every_part_at_its_own_rate(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam's first step is as long as the learning rate."""
    kept = _keep_objective(monkeypatch)
    rates = {"max_steps": 1, "learning_rate": 1e-3, "head_learning_rate": 1e-2}
    moved = _method(tiny_encoder, topic_learning_rate=1e-1, training=rates).fit(TEXTS)
    still = _method(tiny_encoder, topic_learning_rate=1e-12, training=STILL).fit(TEXTS)

    def step(first: torch.Tensor, second: torch.Tensor) -> float:
        return float((first - second).abs().median().detach())

    assert isinstance(kept[0].guide, EmbeddedTopics) and isinstance(kept[1].guide, EmbeddedTopics)
    assert step(kept[0].guide.topic_vectors, kept[1].guide.topic_vectors) == pytest.approx(1e-1, rel=0.05)
    assert step(kept[0].centers, kept[1].centers) == pytest.approx(1e-2, rel=0.05)
    assert step(kept[0].projector[2].weight, kept[1].projector[2].weight) == pytest.approx(1e-2, rel=0.05)
    assert moved.encoder_.projection is not None and still.encoder_.projection is not None
    assert step(moved.encoder_.projection.weight, still.encoder_.projection.weight) == pytest.approx(1e-2, rel=0.05)
    layer = "encoder.layer.1.output.dense.weight"
    both = [dict(model.encoder_.model.named_parameters())[layer] for model in (moved, still)]
    assert step(*both) == pytest.approx(1e-3, rel=0.05)
    assert torch.equal(kept[0].guide.vectors, kept[1].guide.vectors)  # the encoder's word vectors stay as they were


def test_the_same_seed_gives_the_same_model(tiny_encoder: Path) -> None:
    first, second = (_method(tiny_encoder, random_state=3).fit(TEXTS) for _ in range(2))
    assert np.array_equal(first.labels_, second.labels_)
    assert np.array_equal(first.cluster_centers_, second.cluster_centers_)
    assert first.topics_ == second.topics_
    assert first.history_.steps == second.history_.steps
    assert first.history_.steps != _method(tiny_encoder, random_state=4).fit(TEXTS).history_.steps


# --- The start: FC_e from the principal components ---


@pytest.mark.parametrize("radius", [1.0, 6.0])
@pytest.mark.parametrize("normalize", [False, True])
def test_the_start_keeps_the_distances(tiny_encoder: Path, normalize: bool, radius: float) -> None:
    model = _method(tiny_encoder, variant="none", normalize=normalize, radius=radius, training=STILL).fit(REPEATED)
    frozen = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu", normalize=normalize).fit(REPEATED)
    scale = radius if normalize else 1.0
    latent = model.transform(TEXTS)
    np.testing.assert_allclose(_distances(latent), scale * _distances(frozen.transform(TEXTS)), atol=1e-4 * scale)
    # Centred on the corpus, in which a repeated text counts as often as it stands there.
    np.testing.assert_allclose(model.transform(REPEATED).mean(axis=0), 0, atol=1e-4 * scale)
    assert np.array_equal(model.labels_, frozen.labels_)
    assert np.array_equal(model.initial_labels_, frozen.labels_)


def test_the_first_centres_are_those_of_kmeans(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, variant="none", normalize=True, training=STILL).fit(REPEATED)
    latent = model.transform(REPEATED)
    means = np.array([latent[model.initial_labels_ == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-4)
    assert np.abs(means).max() > 0.1


def test_a_narrow_latent_space_keeps_the_widest_directions(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deccrl_module, "LATENT", 5)
    model = _method(tiny_encoder, normalize=True, radius=2.0, training=STILL).fit(REPEATED)
    frozen = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu", normalize=True).fit(REPEATED)
    latent = model.transform(REPEATED)
    assert latent.shape[1] == model.cluster_centers_.shape[1] == model.encoder_.dimension == 5
    widest = np.linalg.eigvalsh(np.cov(frozen.transform(REPEATED), rowvar=False))[::-1][:5]
    np.testing.assert_allclose(np.cov(latent, rowvar=False), np.diag(4 * widest), atol=1e-5)


def test_the_latent_space_has_150_dimensions_at_most() -> None:
    wide = np.random.default_rng(0).normal(size=(400, 160)).astype(np.float32)
    assert principal_components(wide, np.ones(400, dtype=np.int64), deccrl_module.LATENT).out_features == 150


def test_principal_components_have_a_sign_and_count_repeated_rows() -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(12, 4)).astype(np.float32) * [4, 3, 2, 1] + 5
    counts = generator.integers(1, 5, size=12)
    layer = principal_components(rows.astype(np.float32), counts, 3)
    repeated = principal_components(np.repeat(rows, counts, axis=0).astype(np.float32), np.ones(counts.sum()), 3)
    torch.testing.assert_close(layer.weight, repeated.weight, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(layer.bias, repeated.bias, atol=1e-4, rtol=1e-5)
    weight = layer.weight.detach().numpy()
    assert (weight[np.arange(3), np.abs(weight).argmax(axis=1)] > 0).all()
    np.testing.assert_allclose(weight @ weight.T, np.eye(3), atol=1e-6)


def test_a_folder_with_a_linear_layer_of_its_own_is_a_start_like_any_other(tiny_encoder: Path, tmp_path: Path) -> None:
    """Of another width, so that a layer in the wrong place cannot fit by chance."""
    encoder = TransformerEncoder.load(tiny_encoder)
    encoder.project(torch.nn.Linear(32, 7))
    encoder.save(tmp_path / "projected")
    model = _method(tmp_path / "projected", variant="none", training=STILL).fit(TEXTS)
    np.testing.assert_allclose(_distances(model.transform(TEXTS)), _distances(encoder.encode(TEXTS)), atol=1e-4)


# --- Topics ---


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_topics_stand_in_the_order_of_the_labels(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    kept = _keep_objective(monkeypatch)
    model = _method(tiny_encoder, n_topics=4, random_state=seed, topic_learning_rate=0.05).fit(REPEATED)
    guide = kept[0].guide
    assert isinstance(guide, EmbeddedTopics)
    vocabulary = _expected_vocabulary(REPEATED)
    with torch.no_grad():
        beta = guide.topic_words(torch.from_numpy(model.cluster_centers_)).numpy()
        theta = guide.proportions(torch.arange(30))[0].softmax(dim=-1).numpy()
    theta = theta[[TEXTS.index(text) for text in REPEATED]]
    assert len(model.topics_) == 3
    for k, topics in enumerate(model.topics_):
        shares = theta[model.labels_ == k].mean(axis=0)
        assert len(topics) == 4
        assert sum(topic.share for topic in topics) == pytest.approx(1, abs=1e-5)
        for topic, t in zip(topics, np.argsort(-shares), strict=True):
            assert topic.share == pytest.approx(shares[t], abs=1e-5)
            best = np.argsort(-beta[k, t])[:4]
            assert topic.words == tuple(vocabulary[i] for i in best)
            assert topic.probabilities == pytest.approx(beta[k, t][best], abs=1e-6)


def test_the_topic_model_learns_what_the_texts_are_about(tiny_encoder: Path) -> None:
    """Long enough and fast enough, the words of a topic come from the texts of its cluster."""
    texts, _ = topic_texts(60)
    training = {"max_epochs": 20, "check_every": 0, "learning_rate": 1e-4, "head_learning_rate": 1e-3}
    model = _method(tiny_encoder, n_topics=1, topic_learning_rate=0.03, lambda_r=1.0, training=training).fit(texts)
    for k, (topic,) in enumerate(model.topics_):
        mine = " ".join(text for text, label in zip(texts, model.labels_, strict=True) if label == k).split()
        counts = {word: mine.count(word) for word in _expected_vocabulary(texts)}
        likely = np.mean([counts[word] for word in topic.words])
        assert likely > 1.3 * np.mean(list(counts.values())), (k, topic)
    terms = model.history_.term("topics")
    assert np.mean(terms[-9:]) < 0.98 * np.mean(terms[:9])


@pytest.mark.parametrize("n_topics", [1, 7])
def test_so_many_topics_a_cluster(tiny_encoder: Path, n_topics: int) -> None:
    model = _method(tiny_encoder, n_topics=n_topics, training={"max_steps": 1}).fit(TEXTS)
    assert [len(topics) for topics in model.topics_] == [n_topics] * 3


def test_fewer_words_than_four_are_all_there_are(tiny_encoder: Path) -> None:
    texts = [f"{word} {group}" for group in ("parcel", "money", "code") for word in ("my", "late", "the", "reset")]
    model = _method(tiny_encoder, n_topics=1, min_df=4, training={"max_steps": 1}).fit(texts)
    assert all(sorted(topic.words) == ["code", "money", "parcel"] for topics in model.topics_ for topic in topics)


def test_an_empty_cluster_has_topics_of_equal_shares(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _keep_objective(monkeypatch)
    _method(tiny_encoder, n_topics=2, training={"max_steps": 1}).fit(TEXTS)
    guide = kept[0].guide
    assert isinstance(guide, EmbeddedTopics)
    listed = guide.topics(kept[0].centers, torch.zeros(30, dtype=torch.long), torch.ones(30))
    assert [topic.share for topic in listed[2]] == [0.5, 0.5]


def test_topics_trained_alone_change_the_topics_and_nothing_else(tiny_encoder: Path) -> None:
    short, long = (_method(tiny_encoder, n_topics=3, topic_steps=steps).fit(TEXTS) for steps in (0, 150))
    np.testing.assert_array_equal(short.labels_, long.labels_)
    np.testing.assert_array_equal(short.cluster_centers_, long.cluster_centers_)
    np.testing.assert_array_equal(short.transform(TEXTS), long.transform(TEXTS))
    assert short.history_.steps == long.history_.steps
    assert [[t.words for t in c] for c in short.topics_] != [[t.words for t in c] for c in long.topics_]


def test_topics_trained_alone_tell_themselves_apart(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The likelihood of the words rises, and the topics of a cluster differ."""
    kept = _keep_objective(monkeypatch)
    ends = []
    for steps in (0, 200):
        _method(tiny_encoder, n_topics=3, topic_steps=steps, topic_learning_rate=0.01).fit(TEXTS)
        guide = kept[-1].guide
        assert isinstance(guide, EmbeddedTopics)
        embeddings = torch.from_numpy(_method(tiny_encoder, topic_steps=0).fit(TEXTS).transform(TEXTS))
        guide.eval()
        with torch.no_grad():
            o = kept[-1].head_probabilities(embeddings)
            loss = guide.loss(o, kept[-1].centers, torch.arange(30), torch.ones(30))
            beta = guide.topic_words(kept[-1].centers)
        apart = (beta[:, 0] - beta[:, 1]).abs().sum(dim=-1).mean()
        ends.append((float(loss), float(apart)))
    assert ends[1][0] < 0.95 * ends[0][0]
    assert ends[1][1] > 3 * ends[0][1]


def test_a_fit_without_topics_forgets_those_of_the_fit_before(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, training={"max_steps": 1}).fit(TEXTS)
    assert model.topics_
    model.set_params(variant="none").fit(TEXTS)
    assert "topics_" not in vars(model)


# --- The vocabulary ---

SMALL = ["the bank bank card", "bank card", "bank", "why the parcel"]


def _vocabulary(weights: list[int] | None = None, **settings: Any) -> tuple[str, ...]:
    counts = np.array(weights or [1] * len(SMALL))
    return WordCounts.of(SMALL, counts, **{"min_df": 1, "max_df": 1.0, "stop_words": "english"} | settings).vocabulary


def test_rare_common_and_stop_words_are_left_out() -> None:
    assert _vocabulary() == ("bank", "card", "parcel")
    assert _vocabulary(stop_words=None) == ("bank", "card", "parcel", "the", "why")
    assert _vocabulary(min_df=2) == ("bank", "card")  # texts are counted, not occurrences
    assert _vocabulary(min_df=3) == ("bank",)
    assert _vocabulary(max_df=0.5) == ("card", "parcel")
    assert _vocabulary(max_df=0.75) == ("bank", "card", "parcel")
    # A text that stands there three times is three texts.
    assert _vocabulary([1, 1, 1, 3], min_df=3) == ("bank", "parcel")
    assert _vocabulary([1, 1, 1, 3], max_df=0.4) == ("card",)


def test_the_words_of_each_text_and_how_often() -> None:
    found = WordCounts.of(SMALL, np.ones(4, dtype=np.int64), min_df=1, max_df=1.0, stop_words="english")
    bags = [
        {found.vocabulary[w]: c for w, c in zip(words, counts, strict=True) if c}
        for words, counts in zip(found.words, found.counts, strict=True)
    ]
    assert bags == [{"bank": 2, "card": 1}, {"bank": 1, "card": 1}, {"bank": 1}, {"parcel": 1}]
    assert found.sentences == (("bank", "bank", "card"), ("bank", "card"), ("bank",), ("parcel",))
    assert found.words.shape == found.counts.shape == (4, 2)


def test_the_settings_reach_the_vocabulary(tiny_encoder: Path) -> None:
    def words(**settings: Any) -> set[str]:
        model = _method(tiny_encoder, n_topics=40, training={"max_steps": 1}, **settings).fit(TEXTS)
        return {word for topics in model.topics_ for topic in topics for word in topic.words}

    frequency = {word: sum(word in text.split() for text in TEXTS) for word in " ".join(TEXTS).split()}
    stops = {"my", "the", "is", "still", "please", "again", "not", "why"}
    assert not words() & stops
    assert words(stop_words=None, min_df=5) & stops
    common, rare = words(min_df=5), words(max_df=0.1)
    assert common and all(frequency[word] >= 5 for word in common)
    assert rare and all(frequency[word] <= 3 for word in rare)


def test_nothing_but_stop_words_is_an_error_with_the_way_out(tiny_encoder: Path) -> None:
    texts = ["the is my", "not my", "why is the", "still not", "why again", "the again is"]
    with pytest.raises(InputError, match=r"min_df=3.*max_df=0\.5.*stop words excluded.*variant='none'"):
        _method(tiny_encoder).fit(texts)
    with pytest.raises(InputError, match=r"min_df=50"):
        _method(tiny_encoder, min_df=50, stop_words=None).fit(TEXTS)
    assert _method(tiny_encoder, variant="none", training={"max_steps": 1}).fit(texts).labels_.shape == (6,)


def test_texts_without_a_word_of_the_vocabulary_are_noted(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder).fit([*TEXTS, "the is my", "not again", "not again", "not again"])
    # One text that stands there once, one three times, of 34.
    assert any("11.8% of the texts hold no word of the vocabulary" in note for note in model.notes_)
    assert not any("no word of the vocabulary" in note for note in _method(tiny_encoder).fit(TEXTS).notes_)


# --- Word vectors ---


def test_word_vectors_from_the_encoder_or_learned(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.language.word_vectors import encoder_word_vectors

    kept = _keep_objective(monkeypatch)
    frozen = TransformerEncoder.load(tiny_encoder)
    for kind in ("encoder", "learned"):
        _method(tiny_encoder, word_vectors=kind, topic_learning_rate=0.01).fit(TEXTS)
    guides = [objective.guide for objective in kept]
    assert all(isinstance(guide, EmbeddedTopics) for guide in guides)
    vocabulary = _expected_vocabulary(TEXTS)
    np.testing.assert_array_equal(guides[0].vectors.detach().numpy(), encoder_word_vectors(frozen, vocabulary))
    assert not guides[0].vectors.requires_grad
    assert guides[1].vectors.requires_grad
    assert guides[1].vectors.shape == (len(vocabulary), 300)


def test_word2vec_without_gensim_names_the_extra(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(SettingError, match=r"coterie\[word2vec\]"):
        _method(tiny_encoder, word_vectors="word2vec").fit(TEXTS)


@pytest.mark.skipif(importlib.util.find_spec("gensim") is None, reason="gensim is not installed")
def test_word2vec_runs(tiny_encoder: Path) -> None:
    first, second = (_method(tiny_encoder, word_vectors="word2vec").fit(TEXTS) for _ in range(2))
    assert first.topics_ == second.topics_


# --- The folder ---


@pytest.mark.parametrize("normalize", [False, True])
def test_a_loaded_model_answers_the_same(tiny_encoder: Path, tmp_path: Path, normalize: bool) -> None:
    model = _method(tiny_encoder, normalize=normalize).fit(TEXTS)
    model.save_pretrained(tmp_path / "model")
    again = coterie.load(tmp_path / "model", device="cpu")
    assert isinstance(again, DECCRL)
    new = topic_texts(40, seed=9)[0]
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    assert np.array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    assert again.topics_ == model.topics_
    assert isinstance(again.topics_[0][0], Topic)


@pytest.mark.parametrize("variant", ["none", "latent"])
def test_a_loaded_model_without_topics_has_none(tiny_encoder: Path, tmp_path: Path, variant: str) -> None:
    _method(tiny_encoder, variant=variant, training={"max_steps": 1}).fit(TEXTS).save_pretrained(tmp_path / "model")
    assert "topics_" not in vars(coterie.load(tmp_path / "model", device="cpu"))


def test_sentence_transformers_gives_the_latent_vectors(tiny_encoder: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    model = _method(tiny_encoder, normalize=True).fit(TEXTS)
    model.save_pretrained(tmp_path / "model")
    theirs = library.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert type(theirs[-1]).__name__ == "Dense"
    np.testing.assert_allclose(theirs.encode(TEXTS), model.transform(TEXTS), atol=1e-5)


# --- Settings ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.0),
        ("alpha", -1.0),
        ("radius", 0.0),
        ("topic_learning_rate", 0.0),
        ("lambda_c", -0.1),
        ("lambda_r", float("nan")),
        ("lambda_l", -1.0),
        ("variant", "topic"),
        ("word_vectors", "glove"),
        ("stop_words", "german"),
        ("printed_contrast", "yes"),
        ("n_topics", 0),
        ("min_df", 0),
        ("min_df", 0.5),
        ("max_df", 0.0),
        ("max_df", 3),
        ("augmentation_ratio", 1.0),
        ("n_clusters", 1),
    ],
)
def test_bad_settings_are_named(tiny_encoder: Path, name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"{name}="):
        _method(tiny_encoder).set_params(**{name: value}).fit(TEXTS)
