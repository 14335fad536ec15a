"""Coterie's own method: nothing to find, training that spoils, the best round, and each part left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

import coterie
from coterie import Coterie, TrainingConfig, load, load_dataset
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.methods.auto import rounds
from coterie.report.html.content import build_report
from coterie.selection.guard import Candidate

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
    np.testing.assert_allclose(model.transform(some), frozen_vectors(some), atol=1e-5)


def reason(model: Coterie) -> str:
    (found,) = (note for note in model.notes_ if "the start is returned" in note)
    return found


def test_a_salad_of_words_has_no_structure() -> None:
    texts = salad(250)
    model = fitted(texts, 8)
    check_start_is_returned(model, texts)
    assert reason(model).startswith("no structure was found beyond chance")
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


def test_training_that_spoils_the_encoder_is_undone() -> None:
    texts = [each.format(number) for number in range(2, 22) for each in ENGLISH]
    training = TrainingConfig(max_steps=2, batch_size=16, learning_rate=0.3)
    model = Coterie(5, rounds=1, device="cpu", training=training).fit(texts)
    assert len(model.history_.steps) == 2
    check_start_is_returned(model, texts)
    assert "fine-tuning did not help by the label-free criteria" in reason(model)
    assert model.training_verdict_ is not None and model.training_verdict_.outcome == "did not help"
    # It says what training came to, not that nothing changed.
    assert any(each.change < 0 for each in model.training_verdict_.criteria)
    spoiled = Coterie(5, rounds=1, guard=False, device="cpu", training=training).fit(texts)
    assert spoiled.candidates_[-1].gain_over(spoiled.candidates_[0]) < 0
    assert np.abs(spoiled.transform(texts[:4]) - frozen_vectors(texts[:4])).max() > 0.05


def test_the_best_round_is_returned_with_its_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = [each.format(number) for number in range(2, 22) for each in ENGLISH]

    def prefer_the_first_round(name: str, labels: np.ndarray, graphs: object) -> Candidate:
        semantic = {"start": 0.5, "round 1": 0.7, "round 2": 0.6}[name]
        criteria = {"semantic_modularity": semantic, "lexical_modularity": 0.4, "word_likelihood_gain": 0.3}
        return Candidate(name, labels, criteria, 1.0)

    monkeypatch.setattr(rounds, "score_candidate", prefer_the_first_round)
    model = Coterie(
        5, rounds=2, device="cpu", training=TrainingConfig(max_steps=4, batch_size=32, learning_rate=1e-4)
    ).fit(texts)
    assert not {"_frozen_weights", "_teacher"} & set(vars(model)) and model._rounds is None
    (note,) = (note for note in model.notes_ if "fine-tuning" in note)
    assert model.training_verdict_ is not None and model.training_verdict_.outcome == "helped"
    assert (
        note.lower()
        == (model.training_verdict_.sentence.rstrip(".") + ": the partition of round 1 is returned").lower()
    )
    assert [(each.before, each.after) for each in model.training_verdict_.criteria] == [
        (0.5, 0.7),
        (0.4, 0.4),
        (0.3, 0.3),
    ]
    assert adjusted_rand_score(model.labels_, model.candidates_[1].labels) == 1
    assert np.abs(model.transform(texts[:4]) - frozen_vectors(texts[:4])).max() > 1e-4
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


def test_parts_can_be_left_out(tiny_encoder: Path) -> None:
    texts = [each.format(number) for number in range(2, 10) for each in ENGLISH]
    for settings in (
        {"start": "kmeans"},
        {"words": False},
        {"view_weight": 0.0},
        {"neighbour_weight": 0.0},
        {"sizes": "equal"},
        {"sizes": "free"},
        {"rounds": 1},
    ):
        model = fitted(texts, 3, encoder=str(tiny_encoder), guard=False, **settings)
        assert set(model.labels_.tolist()) <= {0, 1, 2}
        assert "no guard: the last round's partition is returned" in model.notes_
        if settings == {"start": "kmeans"}:
            assert model.start_ == "k-means"
        if settings == {"rounds": 1}:
            assert [each.name for each in model.candidates_] == ["start", "round 1"]


def test_many_texts_are_sampled_by_default(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coterie, "usual_sample", 60)
    texts = [each.format(number) for number in range(2, 32) for each in ENGLISH]
    model = fitted(texts, 3, encoder=str(tiny_encoder), guard=False)
    assert any("learned on a sample of 60 of 150 distinct texts" in note for note in model.notes_)
    assert (model.labels_ >= 0).all()
