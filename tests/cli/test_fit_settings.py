"""``coterie fit``: methods, ``--set`` and the other settings, right and wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import coterie, done, read_json, refusal, refusal_line, write_csv
from conftest import topic_texts

from coterie.cli.settings import parse_settings
from coterie.errors import SettingError
from coterie.methods.build_method import build_method
from coterie.methods.registry import METHODS


@pytest.fixture
def texts_csv(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "texts.csv", {"text": topic_texts(30)[0]})


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("rate=5e-6", 5e-6),
        ("rate=1E3", 1000.0),
        ("rate=0.5", 0.5),
        ("rate=64", 64),
        ("rate=-2", -2),
        ("rate=null", None),
        ("rate=true", True),
        ("rate=false", False),
        ("rate=ward", "ward"),
        ("rate=a=b", "a=b"),
        (" rate = ward", "ward"),
    ],
)
def test_values_get_the_type_people_mean(pair: str, value: object) -> None:
    settings = parse_settings([pair])
    assert settings == {"rate": value}
    assert type(settings["rate"]) is type(value)


@pytest.mark.parametrize("pair", ["rate", "=5", " =5", "rate=[1", "rate: 5"])
def test_a_pair_that_cannot_be_read_is_named(pair: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_settings([pair])
    assert repr(pair) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_common_options_go_where_they_are_known() -> None:
    common = {"device": "cpu", "training.progress": True}
    assert build_method("sccl", 4, 7, {"eta": 5}, common).get_params()["device"] == "cpu"
    model = build_method("tfidf", 4, 7, {"max_features": 9}, common)
    assert model.get_params() == {
        "n_clusters": 4,
        "clusterer": "kmeans",
        "max_features": 9,
        "stop_words": None,
        "random_state": 7,
    }


def test_settings_reach_the_run(texts_csv: Path, tiny_encoder: Path) -> None:
    run = texts_csv.with_name("run")
    pairs: dict[str, Any] = {
        "training.max_steps": "2",
        "training.learning_rate": "5e-6",
        "training.max_epochs": "null",
        "training.fresh_views": "false",
        "training.precision": "float32",
        "eta": "3",
        "normalize": "true",
        "variant": "sequential",
    }
    options = [part for name, value in pairs.items() for part in ("--set", f"{name}={value}")]
    method = ("-m", "sccl", "--encoder", tiny_encoder, "--device", "cpu")
    done("fit", texts_csv, "-k", 3, "-o", run, "-q", *method, *options)
    settings = read_json(run / "run.json")["settings"]
    training = settings["training"]
    assert training["learning_rate"] == 5e-6 and isinstance(training["learning_rate"], float)
    assert training["max_epochs"] is None
    assert training["fresh_views"] is False
    assert training["precision"] == "float32"
    assert training["max_steps"] == 2
    assert training["progress"] is False
    assert (settings["eta"], settings["normalize"], settings["variant"]) == (3, True, "sequential")
    assert (settings["encoder"], settings["device"]) == (str(tiny_encoder), "cpu")


@pytest.mark.parametrize("clusterer", ["kmeans", "spherical", "ward", "average"])
def test_every_clusterer_can_be_asked_for(clusterer: str, texts_csv: Path) -> None:
    run = texts_csv.with_name("run")
    done("fit", texts_csv, "-k", 3, "-m", "tfidf", "-q", "-o", run, "--set", f"clusterer={clusterer}")
    assert read_json(run / "run.json")["settings"]["clusterer"] == clusterer
    assert len(read_json(run / "clusters.json")["clusters"]) == 3


def refused(texts_csv: Path, *options: object) -> str:
    """The refusal of a fit; nothing may be left behind."""
    message = refusal("fit", texts_csv, "-k", 3, "-o", texts_csv.with_name("run"), *options)
    assert {path.name for path in texts_csv.parent.iterdir()} == {texts_csv.name}
    return message


def test_an_unknown_setting_is_answered_with_the_known_ones(texts_csv: Path) -> None:
    message = refused(texts_csv, "-m", "tfidf", "--set", "nonsense=1")
    assert "'nonsense'" in message
    assert all(name in message for name in ("clusterer", "max_features", "stop_words"))
    message = refused(texts_csv, "--set", "training.nonsense=1")
    assert "nonsense'" in message
    assert all(name in message for name in ("learning_rate", "max_steps", "check_every"))
    assert "did you mean 'training.max_epochs'?" in refused(texts_csv, "--set", "epochs=3")
    assert "training" in refused(texts_csv, "-m", "tfidf", "--set", "training.max_steps=1")
    assert "training" in refused(texts_csv, "--set", "training=1")
    # These two have options of their own.
    assert "use -k" in refused(texts_csv, "-m", "tfidf", "--set", "n_clusters=4")
    assert "use --seed" in refused(texts_csv, "-m", "tfidf", "--set", "random_state=4")


def test_an_option_that_the_method_has_no_use_for_is_refused(texts_csv: Path, tiny_encoder: Path) -> None:
    assert "'encoder'" in refused(texts_csv, "-m", "tfidf", "--encoder", tiny_encoder)
    assert "--snapshots needs a method that trains" in refused(texts_csv, "-m", "tfidf", "--snapshots", 1)


def test_a_setting_without_a_value_is_refused(texts_csv: Path) -> None:
    assert "name=value" in refused(texts_csv, "--set", "eta")


def test_an_unknown_method_is_answered_with_the_nearest(texts_csv: Path) -> None:
    message = refused(texts_csv, "-m", "tfdif")
    assert "'tfdif' is unknown; did you mean 'tfidf'?" in message
    for info in METHODS:
        assert info.name in message
    message = refused(texts_csv, "-m", "zzz")
    assert "did you mean" not in message
    # Two sentences need something between them.
    assert "unknown There" not in message


BAD_VALUES = [
    "training.learning_rate=fast",
    "training.learning_rate=null",
    "training.head_learning_rate=fast",
    "training.learning_rate=-1",
    "training.tolerance=some",
    "training.max_grad_norm=some",
    "training.max_steps=0",
    "training.max_steps=1.5",
    "training.batch_size=1",
    "training.precision=float16",
    "training.fresh_views=perhaps",
    "training.snapshot_every=-1",
    "temperature=warm",
    "eta=much",
    "alpha=beta",
    "augmentation_ratio=half",
    "augmentation=synonym",
    "final_kmeans=stale",
    "variant=other",
    "max_length=long",
    "max_length=1",
    "pooling=deep",
    "normalize=maybe",
    "encoder=null",
    "device=nowhere",
]


@pytest.mark.parametrize("pair", BAD_VALUES)
def test_a_value_that_cannot_work_is_refused_by_name(pair: str, texts_csv: Path, tiny_encoder: Path) -> None:
    given = ("--set", f"encoder={tiny_encoder}", "--set", "training.max_steps=1", "--set", pair)
    outcome = coterie("fit", texts_csv, "-k", 3, "-o", texts_csv.with_name("run"), *given)
    name = pair.partition("=")[0]
    assert name.removeprefix("training.") in refusal_line(outcome)
    assert {path.name for path in texts_csv.parent.iterdir()} == {texts_csv.name}


@pytest.mark.parametrize("pair", ["max_features=many", "max_features=null", "max_features=0", "max_features=1.5"])
def test_a_word_count_that_cannot_work_is_refused_by_name(pair: str, texts_csv: Path) -> None:
    outcome = coterie("fit", texts_csv, "-k", 3, "-m", "tfidf", "-o", texts_csv.with_name("run"), "--set", pair)
    assert "max_features" in refusal_line(outcome)


@pytest.mark.parametrize("method", ["tfidf", "sccl"])
def test_a_seed_below_zero_is_refused(method: str, texts_csv: Path, tiny_encoder: Path) -> None:
    options = ("-m", method, "--seed", -1, *(("--encoder", tiny_encoder) if method == "sccl" else ()))
    outcome = coterie("fit", texts_csv, "-k", 3, "-o", texts_csv.with_name("run"), *options)
    assert "-1" in refusal_line(outcome)


def test_a_very_large_seed_works_or_is_refused(texts_csv: Path) -> None:
    outcome = coterie("fit", texts_csv, "-k", 3, "-m", "tfidf", "-o", texts_csv.with_name("run"), "--seed", 2**32)
    assert outcome.code == 0 or str(2**32) in refusal_line(outcome)


@pytest.mark.parametrize("device", ["nowhere", "mps", "cuda"])
def test_a_device_that_is_not_there_is_refused(device: str, texts_csv: Path, tiny_encoder: Path) -> None:
    import torch

    if (device == "mps" and torch.backends.mps.is_available()) or (device == "cuda" and torch.cuda.is_available()):
        pytest.skip(f"{device} is here")
    options = ("-m", "frozen", "--encoder", tiny_encoder, "--device", device)
    outcome = coterie("fit", texts_csv, "-k", 3, "-o", texts_csv.with_name("run"), *options)
    assert f"'{device}'" in refusal_line(outcome)


def test_an_encoder_that_is_not_there_is_refused(texts_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = tmp_path_factory.mktemp("empty")
    assert "config.json is missing" in refused_encoder(texts_csv, empty)
    message = refused_encoder(texts_csv, "no-such-model")
    assert "'no-such-model'" in message and "offline" in message


def refused_encoder(texts_csv: Path, encoder: object) -> str:
    options = ("-m", "frozen", "--encoder", encoder)
    return refusal_line(coterie("fit", texts_csv, "-k", 3, "-o", texts_csv.with_name("run"), *options))


def test_none_and_numbers_are_read_as_a_user_means_them() -> None:
    parsed = parse_settings(["a=None", "b=none", "c=5e-6", "d=null", "e=words", "f=true"])
    assert parsed == {"a": None, "b": None, "c": 5e-6, "d": None, "e": "words", "f": True}
