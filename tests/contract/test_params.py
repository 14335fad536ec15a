"""Parameters: the constructor stores, fit checks, scikit-learn's tools work."""

from __future__ import annotations

import inspect
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

from coterie import TrainingConfig
from coterie.errors import NotFittedError, SettingError
from coterie.methods.base import ClusteringMethod
from coterie.methods.registry import METHODS

from .cases import DISTINCT, Case, training

# Values that cannot work, for every parameter of any method.
NONSENSE: dict[str, list[Any]] = {
    "n_clusters": ["3", True, None, 2.5, 0, 1, -2],
    "random_state": ["seed", 1.5, -1],
    "clusterer": ["no such", None],
    "max_features": ["many", 0, 1.5],
    "stop_words": ["no such", 3],
    "encoder": [3, None],
    "pooling": ["no such", None],
    "normalize": ["no such", None],
    "max_length": ["long", 2, 10.5],
    "device": ["no such", None],
    "temperature": ["hot", None, 0, -1.0, math.nan],
    "eta": ["much", None, -1.0, math.nan, math.inf],
    "alpha": ["some", None, 0, math.nan],
    "radius": ["wide", None, 0, -1.0, math.nan, math.inf],
    "variant": ["no such", None],
    "augmentation": ["no such", None],
    "augmentation_ratio": ["some", None, 0, 1, math.nan],
    "final_kmeans": ["no such", None],
    "training": ["fast", None, {"max_steps": 2}],
    # HAC-SD
    "iterative_classification": ["sometimes", None],
    "linkage": ["no such", None],
    "max_rounds": ["many", None, 0, 1.5],
    # AECL
    "tau_instance": ["hot", None, 0, -1.0, math.nan],
    "tau_cluster": ["hot", None, 0, -1.0, math.nan],
    **{f"lambda{i}": ["much", None, -1.0, math.nan, math.inf] for i in (1, 2, 3, 4)},
    "threshold": ["high", None, 0, 1, math.nan],
    "contrast": ["no such", None],
    "attention": ["no such", None],
    "positive_in_denominator": ["sometimes", None],
    "stage_1": ["long", None, -1, 1.5],
    "stage_2": ["long", None, -1, 1.5],
    "stage_3": ["long", None, 0, 1.5],
    "references": ["many", None, 0, 1.5],
    # DECCRL
    **{f"lambda_{i}": ["much", None, -1.0, math.nan, math.inf] for i in "crl"},
    "n_topics": ["many", None, 0, 1.5],
    "word_vectors": ["no such", None],
    "min_df": ["some", None, 0, 1.5],
    "max_df": ["some", None, 0, 1.5, math.nan],
    "topic_learning_rate": ["slow", None, 0, math.nan],
    "topic_steps": ["long", None, -1, 1.5],
    "printed_contrast": ["sometimes", None],
    # ClusterBERT
    "decoder_epochs": ["long", None, -1, 1.5],
    "adaptation_epochs": ["long", None, -1, 1.5],
    "clustering_epochs": ["long", None, -1, 1.5],
    "hardening_epochs": ["long", None, -1, 1.5],
    "reclusterings": ["many", None, 0, 1.5],
    "clustering_lambda": ["much", None, -0.1, 1.1, math.nan],
    "hardening_lambda": ["much", None, -0.1, 1.1, math.nan],
    "reconstruction": ["sometimes", None],
    "noise": ["loud", None, 0, 1, math.nan],
    "pretrain_corpus": [3, ["a text"]],
    # UFTC
    "masked_loss": ["sometimes", None],
    "mask_ratio": ["some", None, 0, 1, math.nan],
    "head_epochs": ["long", None, -1, 1.5],
    # TSDAE
    "denoising_epochs": ["long", None, 0, 1.5],
    # RSTC
    "epsilon": ["some", None, 0, -1.0, math.nan, math.inf],
    "size_penalty": ["some", None, 0, -1.0, math.nan, math.inf],
    "sizes": ["no such", None],
    "contrast_epochs": ["long", None, -1, 1.5],
    "kmeans_epochs": ["long", None, -1, 1.5],
    "transport_epochs": ["long", None, 0, 1.5],
    # Coterie's own
    "start": ["no such", None],
    "rounds": ["many", None, -1, 1.5],
    "words": ["sometimes", None],
    "view_weight": ["much", None, -1.0, math.nan, math.inf],
    "neighbour_weight": ["much", None, -1.0, math.nan, math.inf],
    "guard": ["sometimes", None],
    "head_temperature": ["hot", None, 0, -1.0, math.nan, math.inf],
    # STCC
    "target": ["no such", None],
    "n_bits": ["some", None, 0, 1.5],
    "neighbours": ["some", None, 0, 1.5],
    "vectors": [3, "no such file"],
    "word_dimension": ["wide", None, 0, 1.5],
    "epochs": ["long", None, 0, 1.5],
    "batch_size": ["8", None, 0, 8.5],
    "learning_rate": ["slow", None, 0, math.nan, math.inf],
    # lexical clusters
    "hidden": ["wide", None, 0, 1.5],
    "dimension": ["wide", None, 0, 1.5],
    "min_steps": ["long", None, 0, 1.5],
    "dropout": ["some", None, -0.1, 1, math.nan],
    "kl_weight": ["much", None, -1.0, math.nan, math.inf],
    "contrast_weight": ["much", None, -1.0, math.nan, math.inf],
    # methods over fixed vectors
    "features": ["no such", None],
    "layers": ["wide", None, "", "16-0", "16-", 16],
    "pretrain_steps": ["long", None, 0, 1.5],
    "max_steps": ["long", None, 0, 1.5],
    "update_interval": ["long", None, 0, 1.5],
    "tolerance": ["low", None, -0.1, 1.0, math.nan],
    "gamma": ["much", None, -1.0, math.nan, math.inf],
    "distance_weight": ["much", None, -1.0, math.nan, math.inf],
    "smoothing": ["some", None, 0, -1.0, math.nan],
}
TRAINING_NONSENSE: dict[str, list[Any]] = {
    "batch_size": ["8", 1, True, 8.5],
    "max_steps": ["2", 0],
    "max_epochs": ["2", 0],
    "learning_rate": ["slow", None, 0, math.nan, math.inf],
    "head_learning_rate": ["slow", None, 0, math.nan, math.inf],
    "accumulate": ["2", 0],
    "precision": ["float8", None],
    "length_pool": ["8", 0],
    "trainable_layers": [0, "all", 1.5],
    "check_every": ["2", -1],
    "tolerance": ["low", None, -0.1, 1.0, math.nan],
    "patience": ["2", 0],
    "max_grad_norm": ["one", 0, -1.0, math.nan],
    "snapshot_every": ["2", -1],
    "fresh_views": ["sometimes", None],
    "progress": ["sometimes", None],
}


def test_every_parameter_has_values_that_cannot_work() -> None:
    named = {name for info in METHODS for name in inspect.signature(info.load()).parameters}
    assert named <= set(NONSENSE)
    assert {field.name for field in fields(TrainingConfig)} == set(TRAINING_NONSENSE)


def test_parameters_are_public_and_not_learned(method_case: Case) -> None:
    """A method's fields are its parameters; private and learned attributes are ``field(init=False)``."""
    assert not [name for name in method_case.parameters if name.startswith("_") or name.endswith("_")]
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.signature(method_case.info.load())
    assert [name for name, each in signature.parameters.items() if each.kind == positional] == ["n_clusters"]


def test_the_constructor_only_stores(method_case: Case) -> None:
    values = {name: object() for name in method_case.parameters}
    model = method_case.info.load()(**values)
    assert vars(model) == values


def _accepted(model: ClusteringMethod, name: str) -> bool:
    """Return whether ``fit`` does anything but refuse the setting by its name, in one line."""
    try:
        model.fit(DISTINCT)
    except SettingError as error:
        return name not in str(error) or "\n" in str(error)
    return True


def test_fit_refuses_values_that_cannot_work(method_case: Case, tiny_encoder: Path) -> None:
    accepted = []
    for name in method_case.parameters:
        for value in NONSENSE[name]:
            model = method_case.make(tiny_encoder, **{name: value})
            if _accepted(model, name):
                accepted.append(f"{name}={value!r}")
            else:
                with pytest.raises(NotFittedError):
                    model.predict(DISTINCT)
    assert accepted == []


def test_fit_refuses_training_that_cannot_work(trained_case: Case, tiny_encoder: Path) -> None:
    accepted = [
        f"{name}={value!r}"
        for name, values in TRAINING_NONSENSE.items()
        for value in values
        if _accepted(trained_case.make(tiny_encoder, training=training(**{name: value})), name)
    ]
    assert accepted == []


def test_training_without_any_cap_is_refused(trained_case: Case, tiny_encoder: Path) -> None:
    model = trained_case.make(tiny_encoder, training=training(max_steps=None, max_epochs=None))
    with pytest.raises(SettingError, match="max_steps"):
        model.fit(DISTINCT)


def test_params_round_trip(case: Case, tiny_encoder: Path) -> None:
    model = case.make(tiny_encoder, n_clusters=5, random_state=7)
    shallow = model.get_params(deep=False)
    assert set(shallow) == set(case.parameters)
    again = case.info.load()(n_clusters=2).set_params(**shallow)
    assert again.get_params(deep=True) == model.get_params(deep=True)
    deep = {name: value for name, value in model.get_params().items() if name != "training"}
    assert case.info.load()(n_clusters=2).set_params(**deep).get_params() == model.get_params()


def test_clone_copies_parameters_and_nothing_learned(case: Case, fitted: ClusteringMethod) -> None:
    copy = clone(fitted)
    assert type(copy) is type(fitted)
    assert copy.get_params() == fitted.get_params()
    assert set(vars(copy)) == set(case.parameters)
    with pytest.raises(NotFittedError):
        copy.predict(DISTINCT)


def test_repr_names_the_class_and_what_was_set(case: Case, tiny_encoder: Path) -> None:
    shown = repr(case.make(tiny_encoder, n_clusters=17))
    assert shown.startswith(f"{case.info.class_name}(")
    assert "17" in shown


def test_an_unknown_parameter_is_refused(method_case: Case, tiny_encoder: Path) -> None:
    with pytest.raises(ValueError, match="no_such_thing"):
        method_case.make(tiny_encoder).set_params(no_such_thing=1)


def test_training_settings_are_reached_by_name(trained_case: Case, tiny_encoder: Path) -> None:
    model = trained_case.make(tiny_encoder)
    assert model.get_params()["training__batch_size"] == 8
    assert model.set_params(training__batch_size=16, training__max_steps=4, n_clusters=9) is model
    assert model.get_params()["training"] == replace(trained_case.fast_training, batch_size=16, max_steps=4)
    assert model.get_params()["n_clusters"] == 9
    # A whole configuration and one of its fields in the same call: the field wins.
    model.set_params(training=training(batch_size=10, patience=5), training__batch_size=12)
    assert model.get_params()["training"] == training(batch_size=12, patience=5)


def test_training_settings_are_never_shared(trained_case: Case) -> None:
    build = trained_case.info.load()
    default = inspect.signature(build).parameters["training"].default
    assert isinstance(default, TrainingConfig)
    first, second = build(n_clusters=2), build(n_clusters=2)
    copy = clone(first)
    first.set_params(training__batch_size=99)
    copy.set_params(training__max_steps=7)
    assert first.get_params()["training__batch_size"] == 99
    assert copy.get_params()["training__max_steps"] == 7
    assert second.get_params()["training"] == default
    assert build(n_clusters=2).get_params()["training"] == default
    assert first.get_params()["training__max_steps"] == default.max_steps


def test_an_unknown_training_setting_is_refused(trained_case: Case, tiny_encoder: Path) -> None:
    model = trained_case.make(tiny_encoder)
    with pytest.raises(SettingError, match="no_such_thing"):
        model.set_params(training__no_such_thing=1)
    assert model.get_params()["training"] == trained_case.fast_training


def test_methods_that_do_not_train_say_so(method_case: Case, tiny_encoder: Path) -> None:
    if method_case.info.trains_encoder:
        pytest.skip("trains")
    with pytest.raises(SettingError, match="does not train"):
        method_case.make(tiny_encoder).set_params(training__batch_size=4)
