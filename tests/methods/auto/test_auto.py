"""Coterie's own method: nothing to learn, training that does harm, what is returned, and each part left out."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from sklearn.metrics import adjusted_rand_score

import coterie
from coterie import Coterie, TrainingConfig, load, load_dataset
from coterie.clustering.kmeans import kmeans
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.errors import InputError
from coterie.methods.auto import rounds
from coterie.methods.auto.method import LARGEST_LOSS
from coterie.methods.auto.rounds import START_SEED
from coterie.report.html.content import build_report
from coterie.selection import start_choice
from coterie.selection.guard import Candidate
from coterie.selection.joined_vectors import SMALLEST_AGREEMENT
from coterie.selection.start_choice import ChosenStart, combine

pytestmark = pytest.mark.usefixtures("quick_lexical_views")

QUICK = TrainingConfig(max_epochs=1, max_steps=3, batch_size=32)
GERMAN = (
    "Das Paket ist noch nicht angekommen und ich warte schon seit {} Tagen.",
    "Ich habe mein Passwort vergessen und kann mich seit {} Stunden nicht anmelden.",
    "Die Rechnung über {} Euro ist falsch, bitte schicken Sie mir eine neue.",
    "Wann wird der Betrag von {} Euro auf mein Konto überwiesen?",
    "Die App stürzt immer ab, wenn ich auf Seite {} bin.",
)
ENGLISH = (
    "The parcel has not arrived and I have been waiting for {} days.",
    "I forgot my password and have not been able to log in for {} hours.",
    "The invoice about {} euros is wrong, please send me a new one.",
    "When will the amount of {} euros be paid to my account?",
    "The app always crashes when I am on page {}.",
)


def salad(count: int) -> list[str]:
    """Texts of words that are drawn at random from the bundled sample's."""
    words = sorted({word for text in load_dataset("support").texts for word in str(text or "").lower().split()})
    generator = np.random.default_rng(0)
    return [" ".join(generator.choice(words, 7)) for _ in range(count)]


def fitted(texts: list[str], n_clusters: int, **settings: object) -> Coterie:
    return Coterie(n_clusters, training=QUICK, device="cpu", **settings).fit(texts)  # type: ignore[arg-type]


def frozen_vectors(texts: list[str]) -> np.ndarray:
    encoder = TransformerEncoder.load(DEFAULT_MODEL, max_length=64, device=torch.device("cpu"))
    return encoder.encode(texts)


def check_start_is_returned(model: Coterie, texts: list[str]) -> None:
    assert np.array_equal(model.labels_, model.initial_labels_)
    some = list(dict.fromkeys(texts))[:8]
    np.testing.assert_allclose(model.encoder_.encode(some), frozen_vectors(some), atol=1e-5)


def reason(model: Coterie) -> str:
    (found,) = (note for note in model.notes_ if "is returned, with the pretrained encoder unchanged" in note)
    return found


def test_a_salad_of_words_has_no_structure() -> None:
    texts = salad(250)
    model = fitted(texts, 8)
    check_start_is_returned(model, texts)
    assert reason(model).startswith("no structure was found beyond chance")
    # The plain answer is returned, and nothing else is made.
    assert "k-means of the pretrained encoder's vectors is returned" in reason(model)
    distinct = list(dict.fromkeys(texts))
    plain = kmeans(torch.from_numpy(frozen_vectors(distinct)), 8, seed=START_SEED).labels
    assert adjusted_rand_score(plain, [model.labels_[texts.index(each)] for each in distinct]) > 0.95
    assert model.start_ is model.lexical_ is None and model.candidates_ == ()
    assert not model.history_.steps


@pytest.mark.parametrize("kind", ["numbers", "order"])
def test_one_topic_has_no_structure(kind: str) -> None:
    generator = np.random.default_rng(0)
    message = "my parcel is late and nobody at the depot can tell me when the courier will bring it"
    texts = [
        f"where is my parcel number {generator.integers(10_000, 99_999)}"
        if kind == "numbers"
        else " ".join(generator.permutation(message.split()))
        for _ in range(150)
    ]
    model = fitted(texts, 4)
    check_start_is_returned(model, texts)
    assert "all texts are about one subject" in reason(model)
    assert not model.history_.steps


def test_nearly_all_duplicates_leave_nothing_to_learn() -> None:
    texts = ["where is my parcel"] * 360 + salad(40)
    model = fitted(texts, 5)
    check_start_is_returned(model, texts)
    assert "no structure was found" in reason(model)
    # All of the duplicates are together.
    assert len(set(model.labels_[:360].tolist())) == 1


def test_two_languages_are_noticed() -> None:
    texts = [each.format(number) for number in range(2, 22) for each in (*GERMAN, *ENGLISH)]
    model = fitted(texts, 2)
    check_start_is_returned(model, texts)
    assert "the clusters are languages (english, german), not subjects" in reason(model)
    german = np.array([i % 10 < 5 for i in range(len(texts))])
    assert len(set(model.labels_[german].tolist())) == len(set(model.labels_[~german].tolist())) == 1


def test_fewer_texts_than_can_be_judged() -> None:
    model = fitted(["late parcel", "parcel is late", "forgot my password"], 2)
    assert "leave nothing to learn" in reason(model)
    assert model.training_verdict_ is not None and model.training_verdict_.outcome == "unknown"
    assert "leave nothing to learn" in model.training_verdict_.sentence
    assert model.candidates_ == ()


def test_as_many_texts_as_clusters_and_all_duplicates(tiny_encoder: Path) -> None:
    encoder = {"encoder": str(tiny_encoder)}
    texts = ["late parcel", "parcel is late", "forgot my password"]
    model = fitted([*texts * 5, texts[1], ""], 3, **encoder)
    assert "3 distinct texts in 3 clusters leave nothing to learn" in reason(model)
    assert model.labels_.tolist() == [*model.labels_[:3].tolist() * 5, model.labels_[1], -1]
    assert set(model.labels_[:3].tolist()) == {0, 1, 2}
    assert model.start_ is model.lexical_ is None and model.lexical_share_ == 0
    with pytest.raises(InputError, match="only 1 distinct non-empty texts"):
        fitted(["where is my parcel"] * 50, 2, **encoder)


@pytest.mark.parametrize(
    "texts",
    [
        [f"{first} {second}" for first in "abcdef" for second in "uvwxyz"],
        [f"{word}{word}" for word in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota")],
        ["who are you", "who is it", "where were they", "where are they", "what is this", "what was that"],
        ["".join(some) for some in combinations("包裹密码退款银行", 3)],
    ],
    ids=["only letters", "no common word", "only stop words", "no spaces"],
)
def test_texts_of_unusual_words(texts: list[str], tiny_encoder: Path) -> None:
    model = fitted(texts, 3, encoder=str(tiny_encoder), guard=False)
    assert set(model.labels_.tolist()) <= {0, 1, 2}
    assert np.isfinite(model.confidence_).all() and np.isfinite(model.cluster_centers_).all()
    assert np.array_equal(model.predict(texts), model.labels_)


def test_a_refit_has_nothing_of_the_first_fit(tiny_encoder: Path) -> None:
    model = fitted(topic_texts(40)[0], 3, encoder=str(tiny_encoder), guard=False)
    assert model.lexical_ is not None
    model.fit(["late parcel", "parcel is late", "forgot my password"])
    assert model.start_ is model.lexical_ is None and model.lexical_share_ == 0
    assert model.transform(["late parcel"]).shape == (1, 32)


# Some seeds are larger than a third of the largest that NumPy and scikit-learn accept, also where no seed is given.
@pytest.mark.parametrize("seed", [2**31 - 1, 2**32 - 1])
def test_large_seeds(seed: int, tiny_encoder: Path) -> None:
    model = fitted(topic_texts(30)[0], 3, encoder=str(tiny_encoder), rounds=1, random_state=seed)
    assert set(model.labels_.tolist()) <= {0, 1, 2}


def test_the_start_is_the_same_for_every_seed(tiny_encoder: Path) -> None:
    texts = topic_texts(40)[0]
    one, other, trained = (
        fitted(texts, 3, encoder=str(tiny_encoder), random_state=seed, rounds=rounds, guard=False)
        for seed, rounds in ((0, 0), (1, 0), (2, 1))
    )
    assert np.array_equal(one.labels_, other.labels_)
    assert np.array_equal(one.labels_, trained.initial_labels_)
    assert one.lexical_share_ == other.lexical_share_ == trained.lexical_share_ > 0


# --- The guard ---


def test_training_that_does_harm_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [each.format(number) for number in range(2, 22) for each in ENGLISH]
    training = TrainingConfig(max_steps=2, batch_size=16, learning_rate=0.3)

    def combine_badly(*given: Any) -> ChosenStart:
        """Return what the rounds would, with a third of the texts in random clusters."""
        found, generator = combine(*given), np.random.default_rng(0)
        wrong = generator.random(len(found.labels)) < 1 / 3
        return replace(found, labels=np.where(wrong, generator.permutation(found.labels), found.labels))

    monkeypatch.setattr("coterie.methods.auto.rounds.combine", combine_badly)
    model = Coterie(5, rounds=1, device="cpu", training=training).fit(texts)
    assert len(model.history_.steps) == 2
    check_start_is_returned(model, texts)
    start, trained, united = model.candidates_
    assert (start.name, trained.name, united.name) == ("start", "round 1", "before and after training")
    assert trained.gain_over(start) < -LARGEST_LOSS
    assert "fine-tuning did not help by the label-free criteria" in reason(model)
    assert model.training_verdict_ is not None and model.training_verdict_.outcome == "did not help"
    # The verdict is on the trained clusters, which are not returned.
    assert any(each.change < 0 for each in model.training_verdict_.criteria)
    assert np.array_equal(model.predict(texts), model.labels_)
    # Also the lexical view is that of the start.
    before = Coterie(5, rounds=0, device="cpu").fit(texts)
    assert model.lexical_ is not None and before.lexical_ is not None
    np.testing.assert_array_equal(model.lexical_.encode(texts[:9]), before.lexical_.encode(texts[:9]))
    np.testing.assert_allclose(model.transform(texts[:9]), before.transform(texts[:9]), atol=1e-6)
    harmed = Coterie(5, rounds=1, guard=False, device="cpu", training=training).fit(texts)
    assert harmed.candidates_[1].gain_over(harmed.candidates_[0]) < -LARGEST_LOSS
    assert adjusted_rand_score(harmed.labels_, [_partition(harmed, 1)[text] for text in texts]) == 1
    assert np.abs(harmed.encoder_.encode(texts[:4]) - frozen_vectors(texts[:4])).max() > 0.05


def _partition(model: Coterie, number: int) -> dict[str, int]:
    """Return the cluster of each text in a candidate, for texts that were fitted as they stand in ``ENGLISH``."""
    texts = dict.fromkeys(each.format(count) for count in range(2, 22) for each in ENGLISH)
    return dict(zip(texts, model.candidates_[number].labels.tolist(), strict=True))


def candidate(name: str, semantic: float) -> Candidate:
    criteria = {"semantic_modularity": semantic, "lexical_modularity": 0.4, "word_likelihood_gain": 0.3}
    return Candidate(name, np.random.default_rng(int(1000 * semantic)).integers(3, size=30), criteria, 1.0)


@pytest.mark.parametrize(
    ("semantic", "outcome", "returned"),
    [
        (0.6, "helped", "united"),
        (0.499, "changed little", "united"),
        # A loss of 0.1 of the modularity is the largest for which training counts.
        (0.46, "did not help", "united"),
        (0.44, "did not help", "start"),
    ],
)
def test_the_start_is_returned_after_a_clear_loss(semantic: float, outcome: str, returned: str) -> None:
    start, trained, united = candidate("start", 0.5), candidate("round 2", semantic), candidate("united", 0.3)
    for guard in (True, False):
        model = Coterie(3, guard=guard)
        model.notes_ = ()
        best = model._select(start, trained, united)
        assert best.name == (returned if guard else "round 2")
        assert model.training_verdict_ is not None and model.training_verdict_.outcome == outcome
        (note,) = model.notes_
        if guard:
            assert note.lower().startswith(model.training_verdict_.sentence.rstrip(".").lower())
            assert ("with the pretrained encoder unchanged" in note) == (best is start)
            assert ("the consensus of the clusterings before and after training is returned" in note) == (
                best is united
            )
            # Without words there is no agreement to give as the reason.
            assert "agree" not in note
        else:
            assert note == "no guard: the last round's partition is returned"


def test_the_consensus_of_before_and_after_is_returned_with_its_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts = [each.format(number) for number in range(2, 22) for each in ENGLISH]
    semantic = {"start": 0.5, "round 1": 0.3, "round 2": 0.6, "before and after training": 0.55}

    def score(name: str, labels: np.ndarray, graphs: object) -> Candidate:
        return replace(candidate(name, semantic[name]), labels=labels)

    monkeypatch.setattr(rounds, "score_candidate", score)
    model = Coterie(
        5, rounds=2, device="cpu", training=TrainingConfig(max_steps=4, batch_size=32, learning_rate=1e-4)
    ).fit(texts)
    assert not {"_frozen_weights", "_teacher"} & set(vars(model)) and model._rounds is None
    assert [each.name for each in model.candidates_] == list(semantic)
    assert model.training_verdict_ is not None and model.training_verdict_.outcome == "helped"
    # Training is judged by the last round, not by the consensus.
    assert [(each.before, each.after) for each in model.training_verdict_.criteria] == [
        (0.5, 0.6),
        (0.4, 0.4),
        (0.3, 0.3),
    ]
    assert adjusted_rand_score(model.labels_, [_partition(model, 3)[text] for text in texts]) == 1
    assert np.abs(model.encoder_.encode(texts[:4]) - frozen_vectors(texts[:4])).max() > 1e-4
    model.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict(texts), model.predict(texts))
    assert again.training_verdict_ == model.training_verdict_
    # A folder of an earlier version has no verdict.
    meta = tmp_path / "model" / "coterie.json"
    content = json.loads(meta.read_text(encoding="utf-8"))
    del content["training_verdict"]
    meta.write_text(json.dumps(content), encoding="utf-8")
    assert load(tmp_path / "model").training_verdict_ is None


def test_nothing_is_trained_where_the_views_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [each.format(number) for number in range(2, 22) for each in ENGLISH]
    monkeypatch.setattr(start_choice, "view_agreement", lambda *given: SMALLEST_AGREEMENT - 0.01)
    model = fitted(texts, 5)
    check_start_is_returned(model, texts)
    assert "clusters by meaning and by words disagree (0.74 on a scale from 0 to 1; 0.75 is needed)" in reason(model)
    assert not model.history_.steps and len(model.candidates_) == 1
    assert any("words are left out of the vectors" in note for note in model.notes_)
    assert model.lexical_ is None and model.lexical_share_ == 0
    np.testing.assert_allclose(model.transform(texts[:4]), frozen_vectors(texts[:4]), atol=1e-5)
    assert model.training_verdict_ is not None and model.training_verdict_.outcome == "unknown"
    # Without the guard it is trained all the same.
    assert fitted(texts, 5, guard=False).history_.steps


@pytest.mark.parametrize("learning_rate", [1e-4, 0.3], ids=["gentle training", "training that spoils"])
def test_the_notes_the_run_and_its_report_have_one_verdict(learning_rate: float, tmp_path: Path) -> None:
    texts = [each.format(number) for number in range(2, 22) for each in ENGLISH]
    settings = {"rounds": 1, "training.max_steps": 4, "training.learning_rate": learning_rate}
    run = coterie.fit(texts, 5, output=tmp_path / "run", device="cpu", settings=settings, report=False)
    verdict = run.training_verdict
    assert verdict is not None and verdict.outcome != "unknown"
    (note,) = (note for note in run.about["notes"] if "fine-tuning" in note)
    assert note.lower().startswith(verdict.sentence.rstrip(".").lower())
    assert run.about["training_verdict"] == verdict.to_dict() == run.model.training_verdict_.to_dict()
    headline = build_report(run).content["headline"]
    assert any(sentence.startswith(f"Fine-tuning {verdict.outcome} by") for sentence in headline)


@pytest.mark.parametrize(
    "settings",
    [
        {"start": "kmeans"},
        {"words": False},
        {"view_weight": 0.0},
        {"neighbour_weight": 0.0},
        {"sizes": "equal"},
        {"sizes": "free"},
        {"rounds": 1},
    ],
    ids=str,
)
def test_parts_can_be_left_out(settings: dict[str, object], tiny_encoder: Path) -> None:
    texts = topic_texts(40)[0]
    model = fitted(texts, 3, encoder=str(tiny_encoder), guard=False, **settings)
    assert set(model.labels_.tolist()) <= {0, 1, 2}
    assert np.array_equal(model.predict(texts), model.labels_)
    assert "no guard: the last round's partition is returned" in model.notes_
    names = [each.name for each in model.candidates_]
    if settings == {"rounds": 1}:
        assert names == ["start", "round 1", "before and after training"]
    else:
        assert names == ["start", "round 1", "round 2", "before and after training"]
    assert model.start_ is not None
    (note,) = (note for note in model.notes_ if note.startswith("the start is"))
    if settings == {"start": "kmeans"}:
        assert [each.clustering.algorithm for each in model.start_.candidates] == ["k-means"]
        assert note == "the start is k-means of the encoder's vectors"
    elif settings == {"words": False}:
        assert note.split("; ")[1] == "words are not used"
        assert np.isnan(model.candidates_[-1].criteria["lexical_modularity"])
    else:
        assert f"words have a share of {model.lexical_share_:.0%} in the vectors" in note
    without_words = settings in ({"start": "kmeans"}, {"words": False})
    assert (model.lexical_ is None) == (model.lexical_share_ == 0) == without_words
    if "sizes" in settings:
        assert "cluster sizes look" not in note
        assert {each.clustering.sizes for each in model.start_.candidates if each.weight} == {settings["sizes"]}


@pytest.mark.parametrize("guard", [True, False])
def test_without_rounds_the_start_is_returned(guard: bool, tiny_encoder: Path, tmp_path: Path) -> None:
    texts = topic_texts(40)[0]
    model = fitted(texts, 3, encoder=str(tiny_encoder), rounds=0, guard=guard)
    assert reason(model).startswith("no rounds of training were asked for")
    assert not model.history_.steps and np.array_equal(model.labels_, model.initial_labels_)
    assert [each.name for each in model.candidates_] == ["start"]
    assert model.start_ is not None and adjusted_rand_score(model.start_.labels, model.labels_) == 1
    assert model.training_verdict_ is not None and model.training_verdict_.outcome == "unknown"
    # The lexical view of the start is part of the model.
    assert model.lexical_ is not None
    assert model.transform(texts[:1]).shape == (1, 32 + model.lexical_.encode(texts[:1]).shape[1])
    model.save_pretrained(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(texts), model.labels_)


def test_many_texts_are_sampled_by_default(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coterie, "usual_sample", 60)
    texts = [each.format(number) for number in range(2, 32) for each in ENGLISH]
    model = fitted(texts, 3, encoder=str(tiny_encoder), guard=False)
    assert any("learned on a sample of 60 of 150 distinct texts" in note for note in model.notes_)
    assert (model.labels_ >= 0).all()
