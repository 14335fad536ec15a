"""AECL as an estimator, on a tiny encoder: stages and ablations, the head's answer in any company, interruption."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts

import coterie
import coterie.methods.aecl.method as aecl_module
from coterie import AECL, FrozenEncoder, TrainingConfig
from coterie.errors import SettingError
from coterie.methods import head_probabilities
from coterie.methods.aecl.method import CONTRASTS
from coterie.methods.aecl.networks import ATTENTIONS
from coterie.training.steps import Steps

TEXTS, TOPICS = topic_texts(60)
FEW = TEXTS[:30]
UNSEEN = [*topic_texts(20, seed=9)[0], "parcel", "xyzzy", "?!", "where is my refund " * 20, "Äpfel 日本語 🙂"]


def _method(folder: Path, *, n_clusters: int = 3, training: dict[str, Any] | None = None, **settings: Any) -> AECL:
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
    stages = {"stage_1": 2, "stage_2": 2, "stage_3": 2, "augmentation": "word_deletion", "augmentation_ratio": 0.3}
    return AECL(
        n_clusters,
        encoder=str(folder),
        device="cpu",
        training=TrainingConfig(**chosen),
        **{**stages, **settings},
    )


@pytest.fixture(scope="module")
def learned(tiny_encoder: Path) -> AECL:
    """Trained until it separates the topics; rows with different counts. Tests must not change it."""
    training = {"batch_size": 30, "max_epochs": 60}
    lengths = {"stage_1": 10, "stage_2": 20, "stage_3": 30}
    return _method(tiny_encoder, training=training, threshold=0.8, **lengths).fit([*TEXTS, *TEXTS[:7]])


def _purity(labels: np.ndarray, topics: list[str]) -> float:
    pairs = Counter(zip(labels.tolist(), topics, strict=True))
    return sum(max(pairs[label, topic] for topic in set(topics)) for label in set(labels.tolist())) / len(topics)


# --- What is learned ---


def test_separable_texts_are_separated_by_the_head(learned: AECL) -> None:
    topics = [*TOPICS, *TOPICS[:7]]
    assert _purity(learned.labels_, topics) > 0.95
    assert _purity(learned.initial_labels_, topics) < 0.9  # not what the frozen encoder knew
    assert len(np.unique(learned.labels_)) == 3
    assert learned.predict_agreement_ >= 0.95
    assert any("predict agrees with the assignments inside training batches" in note for note in learned.notes_)
    for name, before, after in (("instance", 2.5, 1.7), ("pseudo", 0.9, 0.2)):
        values = learned.history_.term(name)
        assert np.mean(values[:2]) > before and np.mean(values[-4:]) < after, name
    assert learned.history_.term("confident")[-1] > 0.9
    assert learned.history_.encoder_change > 1e-4


OFF = {"lambda1": 0.0, "lambda2": 0.0, "lambda3": 0.0, "lambda4": 0.0}


@pytest.mark.parametrize(
    ("term", "weights"),
    [
        ("cluster", OFF),
        ("instance", {**OFF, "lambda1": 30.0}),
        ("balance", {**OFF, "lambda4": 30.0}),
        ("pseudo", {**OFF, "lambda2": 30.0}),
    ],
)
def test_each_term_falls_where_it_weighs_most(tiny_encoder: Path, term: str, weights: dict[str, float]) -> None:
    only = {"stage_1": 0, "stage_2": 0, "stage_3": 50, "threshold": 0.34, "tau_cluster": 0.5, **weights}
    training = {"max_epochs": 50, "batch_size": 30}
    values = _method(tiny_encoder, training=training, **only).fit(FEW).history_.term(term)
    first, last = np.mean(values[:3]), np.mean(values[-3:])
    assert last < 0.9 * first


def test_the_entropy_of_single_assignments_is_raised(tiny_encoder: Path) -> None:
    ends = []
    for weight in (0.0, 30.0):
        lengths = {"stage_1": 0, "stage_2": 0, "stage_3": 50}
        only = {**OFF, **lengths, "lambda2": 5.0, "lambda3": weight, "threshold": 0.34}
        model = _method(tiny_encoder, training={"max_epochs": 50, "batch_size": 30}, **only).fit(FEW)
        ends.append(np.mean(model.history_.term("entropy")[-3:]))
    assert ends[1] > ends[0] + 0.3


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("contrast", CONTRASTS)
def test_every_form_trains_and_keeps_its_terms(tiny_encoder: Path, attention: str, contrast: str) -> None:
    virtual = {"augmentation": "virtual"} if contrast == "plain" else {}
    training = {"max_epochs": 3}
    lengths = {"stage_1": 1, "stage_2": 1, "stage_3": 1}
    method = _method(tiny_encoder, attention=attention, contrast=contrast, training=training, **lengths, **virtual)
    model = method.fit(FEW)
    terms = {
        "stage_1": {"instance"},
        "stage_2": {"instance", "pseudo"},
        "stage_3": {"instance", "pseudo", "cluster", "entropy", "balance", "confident"},
    }
    assert [record["stage"] for record in model.history_.steps] == [name for name in terms for _ in range(2)]
    for record in model.history_.steps:
        assert set(record) - {"stage", "epoch", "step", "loss"} == terms[record["stage"]]
        assert all(np.isfinite(record[name]) for name in ("loss", *terms[record["stage"]]))
    assert np.array_equal(model.predict(FEW), model.labels_)


def test_the_same_seed_gives_the_same_model(tiny_encoder: Path) -> None:
    first, second, other = (_method(tiny_encoder, random_state=seed).fit(FEW) for seed in (3, 3, 4))
    assert np.array_equal(first.labels_, second.labels_)
    assert np.array_equal(first.predict_proba(UNSEEN), second.predict_proba(UNSEEN))
    assert first.history_.steps == second.history_.steps
    assert first.history_.steps != other.history_.steps


# --- The answer in any company ---


def test_labels_are_what_predict_says(learned: AECL) -> None:
    assert np.array_equal(learned.predict([*TEXTS, *TEXTS[:7]]), learned.labels_)
    assert np.array_equal(learned.head_labels_, learned.labels_)
    probabilities = learned.predict_proba(TEXTS)
    assert np.array_equal(probabilities.argmax(axis=1), learned.labels_[:60])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_an_answer_does_not_depend_on_company_order_or_number(learned: AECL) -> None:
    mixed = [*UNSEEN, *TEXTS]
    together, labels = learned.predict_proba(mixed), learned.predict(mixed)
    order = np.random.default_rng(0).permutation(len(mixed))
    shuffled = [mixed[i] for i in order]
    assert np.array_equal(learned.predict(shuffled), labels[order])
    np.testing.assert_allclose(learned.predict_proba(shuffled), together[order], atol=1e-5)
    for i in range(0, len(mixed), 5):
        assert learned.predict([mixed[i]]).item() == labels[i]
        np.testing.assert_allclose(learned.predict_proba([mixed[i]])[0], together[i], atol=1e-5)
        np.testing.assert_allclose(learned.transform([mixed[i]])[0], learned.transform(mixed)[i], atol=1e-5)


def test_blocks_do_not_matter(learned: AECL, monkeypatch: pytest.MonkeyPatch) -> None:
    together = learned.predict_proba(UNSEEN)
    monkeypatch.setattr(head_probabilities, "BLOCK", 4)
    np.testing.assert_allclose(learned.predict_proba(UNSEEN), together, rtol=1e-9)


def test_a_tie_is_settled_by_the_text_alone(learned: AECL, monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[str] = []
    real = AECL._encode_one_by_one

    def spy(model: AECL, texts: list[str]) -> Any:
        alone.extend(texts)
        return real(model, texts)

    monkeypatch.setattr(AECL, "_encode_one_by_one", spy)
    expected = learned.predict_proba(TEXTS)
    assert len(alone) < 6  # hardly any
    monkeypatch.setattr(head_probabilities, "TIE", 1e6)
    np.testing.assert_allclose(learned.predict_proba(TEXTS), expected, atol=1e-5)
    assert set(TEXTS) <= set(alone)


def test_a_text_attends_to_itself_and_the_references(learned: AECL) -> None:
    """The answer is the head's in a batch of the text and the references, and of nothing else."""
    head = learned.head_
    for text in UNSEEN[:4]:
        batch = np.concatenate([learned.transform([text]), learned.references_])
        with torch.no_grad():
            expected = head(torch.from_numpy(batch))[0].numpy()
        np.testing.assert_allclose(learned.predict_proba([text])[0], expected, atol=1e-4)
    assert not head.training


def test_attention_between_texts(learned: AECL) -> None:
    similarities = learned.attention_between(TEXTS[:9])
    assert similarities.shape == (9, 9)
    np.testing.assert_allclose(similarities.sum(axis=1), 1)
    # Texts attend to texts of their own topic more than to others.
    same = np.array([[a == b for b in TOPICS[:9]] for a in TOPICS[:9]])
    assert similarities[same].mean() > similarities[~same].mean()


# --- Clusters, references ---


def test_clusters_are_ordered_by_size_and_the_head_with_them(tiny_encoder: Path) -> None:
    for seed in range(4):
        repeated = [*FEW, *FEW[seed::7], *FEW[seed::7]]
        model = _method(tiny_encoder, random_state=seed).fit(repeated)
        sizes = np.bincount(model.labels_, minlength=3)
        assert sizes.tolist() == sorted(sizes, reverse=True)
        probabilities = model.predict_proba(repeated)
        assert np.array_equal(probabilities.argmax(axis=1), model.labels_)
        assert np.array_equal(model.predict(repeated), model.labels_)
        features = model.transform(repeated)
        for label in range(3):
            rows = model.labels_ == label
            if rows.any():
                np.testing.assert_allclose(model.cluster_centers_[label], features[rows].mean(axis=0), atol=1e-5)
        chosen, other = np.sort(probabilities, axis=1)[:, ::-1][:, :2].T
        np.testing.assert_allclose(model.confidence_, 1 - other / chosen, atol=1e-5)


@pytest.mark.parametrize("n", [4, 12, 400])
def test_references_are_of_all_clusters_by_their_share(tiny_encoder: Path, n: int) -> None:
    method = _method(tiny_encoder, references=n)
    method.seed_ = 0
    labels = np.repeat([2, 0, 1], [10, 20, 30])
    rows = method._draw_references(labels)
    assert len(rows) == len(set(rows.tolist())) == min(n, 60)
    shares = np.bincount(labels[rows], minlength=3) / len(rows)
    np.testing.assert_allclose(shares, [1 / 3, 1 / 2, 1 / 6], atol=1.01 / len(rows))
    assert set(labels[rows]) == {0, 1, 2}
    assert np.array_equal(rows, method._draw_references(labels))
    method.seed_ = 1
    assert n == 400 or not np.array_equal(rows, method._draw_references(labels))


def test_references_are_kept_with_the_model(learned: AECL, tiny_encoder: Path) -> None:
    assert learned.references_.shape == (60, 32)
    features = learned.transform(TEXTS)
    assert np.abs(learned.references_[:, None] - features[None]).max(axis=2).min(axis=1).max() < 1e-5
    few = _method(tiny_encoder, references=5).fit(FEW)
    assert few.references_.shape == (5, 32)
    assert np.array_equal(few.predict(FEW), few.labels_)


def test_saved_and_loaded_it_answers_the_same(learned: AECL, tmp_path: Path) -> None:
    learned.save_pretrained(tmp_path / "model")
    again = coterie.load(tmp_path / "model", device="cpu")
    assert isinstance(again, AECL)
    np.testing.assert_allclose(again.predict_proba(UNSEEN), learned.predict_proba(UNSEEN), rtol=1e-9)
    assert np.array_equal(again.predict(TEXTS), learned.labels_[:60])
    assert again.predict_agreement_ == learned.predict_agreement_
    assert np.array_equal(again.references_, learned.references_)
    np.testing.assert_allclose(again.attention_between(TEXTS[:4]), learned.attention_between(TEXTS[:4]), rtol=1e-9)


# --- Stages ---


def _lengths(model: AECL) -> dict[str, int]:
    return dict(Counter(record["stage"] for record in model.history_.steps))


@pytest.mark.parametrize(
    ("training", "steps"),
    [
        ({"max_epochs": 12}, {"stage_1": 4, "stage_2": 8, "stage_3": 12}),
        ({"max_epochs": 6}, {"stage_1": 2, "stage_2": 4, "stage_3": 6}),
        ({"max_epochs": 12, "max_steps": 6}, {"stage_1": 1, "stage_2": 2, "stage_3": 3}),
    ],
)
def test_stages_shrink_alike_under_a_lower_cap(
    tiny_encoder: Path, training: dict[str, int], steps: dict[str, int]
) -> None:
    model = _method(tiny_encoder, stage_1=2, stage_2=4, stage_3=6, training=training).fit(FEW)
    assert _lengths(model) == steps


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({"stage_1": 0}, ["stage_2", "stage_3"]),
        ({"stage_2": 0}, ["stage_1", "stage_3"]),
        ({"stage_1": 0, "stage_2": 0}, ["stage_3"]),
    ],
)
def test_a_stage_can_be_left_out(tiny_encoder: Path, changed: dict[str, int], left: list[str]) -> None:
    model = _method(tiny_encoder, **changed).fit(FEW)
    assert list(model.history_.stop_reasons) == left == list(_lengths(model))
    assert len(model.history_.steps) == 12  # the others fill the whole
    assert np.array_equal(model.predict(FEW), model.labels_)


@pytest.mark.parametrize(("name", "term", "sign"), [("lambda2", "pseudo", 1), ("lambda3", "entropy", -1)])
def test_a_weight_of_zero_drops_its_term(tiny_encoder: Path, name: str, term: str, sign: int) -> None:
    weights = {"lambda1": 2.0, "lambda2": 3.0, "lambda3": 0.5, "lambda4": 0.7}
    for value in (weights[name], 0.0):
        model = _method(tiny_encoder, threshold=0.34, **{**weights, name: value}).fit(FEW)
        for record in model.history_.steps:
            if record["stage"] == "stage_3":
                others = {"cluster": 1.0, "instance": 2.0, "pseudo": 3.0, "entropy": -0.5, "balance": 0.7}
                others[term] = sign * value
                total = sum(factor * record[each] for each, factor in others.items())
                assert record["loss"] == pytest.approx(total, rel=1e-4)
                assert record[term] > 0


def test_only_stage_3_is_looked_at_and_by_its_head(tiny_encoder: Path) -> None:
    training = {"check_every": 1, "patience": 1, "tolerance": 0.9, "max_epochs": 12}
    model = _method(tiny_encoder, stage_1=3, stage_2=3, stage_3=6, training=training).fit(FEW)
    assert {check["stage"] for check in model.history_.checks} == {"stage_3"}
    assert model.history_.checks[0]["label_change"] == 1  # a head's first look
    assert model.history_.stop_reasons == {"stage_1": "cap", "stage_2": "cap", "stage_3": "converged"}


def test_k_means_labels_are_made_anew_every_epoch_of_stage_1(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, np.ndarray]] = []
    real = aecl_module.AECLObjective.refresh

    def spy(objective: Any, embed_corpus: Any) -> None:
        before = objective.pseudo_labels.labels.clone()
        real(objective, embed_corpus)
        after = objective.pseudo_labels.labels
        if objective.stage == 1:
            expected = objective._kmeans_labels(embed_corpus())
            assert torch.equal(after, expected)
        else:
            assert torch.equal(after, before)
        seen.append((objective.stage, after.numpy().copy()))

    monkeypatch.setattr(aecl_module.AECLObjective, "refresh", spy)
    model = _method(tiny_encoder, training={"learning_rate": 1e-2}).fit(FEW)
    assert [stage for stage, _ in seen] == [1, 1, 2, 2, 3, 3]
    frozen = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu").fit(FEW)
    assert np.array_equal(model.initial_labels_, _named_like(frozen.labels_, model.initial_labels_))


def _named_like(labels: np.ndarray, other: np.ndarray) -> np.ndarray:
    names = dict(zip(labels.tolist(), other.tolist(), strict=True))
    assert len(names) == len(set(names.values()))
    return np.array([names[label] for label in labels.tolist()])


# --- Interruption ---


def _interrupt(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    steps: list[int] = []
    real = Steps.take

    def unlucky(*arguments: Any) -> Any:
        steps.append(1)
        if len(steps) == step:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(Steps, "take", unlucky)


def test_interrupted_in_stage_1_it_is_k_means(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _interrupt(monkeypatch, 3)
    model = _method(tiny_encoder).fit(FEW)
    assert model.history_.stop_reasons == {"stage_1": "interrupted"}
    assert any("interrupted after 2 steps" in note for note in model.notes_)
    assert any("before the head had learned anything: labels are k-means" in note for note in model.notes_)
    assert np.array_equal(model.kmeans_labels_, model.labels_)
    assert "predict_agreement_" not in vars(model)
    assert np.array_equal(model.predict(FEW), model.labels_)
    features = model.transform(FEW)
    nearest = np.square(features[:, None] - model.cluster_centers_[None]).sum(axis=2).argmin(axis=1)
    assert np.array_equal(model.labels_, nearest)
    model.save_pretrained(tmp_path / "model")
    again = coterie.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(again.predict_proba(UNSEEN), model.predict_proba(UNSEEN), atol=1e-6)
    assert "predict_agreement_" not in vars(again)


@pytest.mark.parametrize(("step", "stage"), [(7, "stage_2"), (11, "stage_3")])
def test_interrupted_later_it_is_the_head_so_far(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, step: int, stage: str
) -> None:
    _interrupt(monkeypatch, step)
    model = _method(tiny_encoder).fit(FEW)
    assert list(model.history_.stop_reasons)[-1] == stage
    assert len(model.references_) == 30
    assert np.array_equal(model.predict(FEW), model.labels_)
    assert np.array_equal(model.predict_proba(FEW).argmax(axis=1), model.labels_)


@pytest.mark.parametrize("how", ["interrupted", "capped"])
def test_a_head_without_a_single_step_does_not_answer(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Stage 1 takes all the steps there are, or the interruption comes before the first step of stage 2."""
    if how == "interrupted":
        _interrupt(monkeypatch, 5)
        model = _method(tiny_encoder).fit(FEW)
    else:
        model = _method(tiny_encoder, stage_1=10, stage_2=0, stage_3=1, training={"max_steps": 4}).fit(FEW)
    assert set(_lengths(model)) == {"stage_1"}
    assert any("before the head had learned anything" in note for note in model.notes_)
    assert np.array_equal(model.kmeans_labels_, model.labels_)


# --- Settings ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tau_instance", 0.0),
        ("tau_cluster", -1.0),
        ("lambda1", -0.1),
        ("lambda2", float("nan")),
        ("lambda3", -1),
        ("lambda4", -1),
        ("threshold", 1.0),
        ("threshold", 0.0),
        ("contrast", "both"),
        ("attention", "none"),
        ("positive_in_denominator", "yes"),
        ("stage_1", -1),
        ("stage_2", 1.5),
        ("stage_3", 0),
        ("references", 0),
        ("augmentation", "nonsense"),
        ("n_clusters", 1),
    ],
)
def test_bad_settings_are_named(tiny_encoder: Path, name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"{name}="):
        _method(tiny_encoder).set_params(**{name: value}).fit(FEW)


def test_empty_rows_and_repeats(tiny_encoder: Path) -> None:
    rows = [*FEW[:12], "", None, *FEW[:3]]
    model = _method(tiny_encoder).fit(rows)
    assert model.labels_[12:14].tolist() == [-1, -1]
    assert np.array_equal(model.labels_[14:], model.labels_[:3])
    assert np.array_equal(model.predict(rows), model.labels_)
    assert model.predict_proba(["", FEW[0]])[0].tolist() == [0, 0, 0]
    assert len(model.references_) == 12
