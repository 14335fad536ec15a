"""What fit takes, what it refuses, and vectors given instead of an encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie import Corpus, FrozenEncoder, TfIdf
from coterie.errors import InputError, SettingError
from coterie.methods.base import ClusteringMethod

from .cases import CLUSTERERS_OF_FROZEN, DISTINCT, IS_EMPTY, LINKAGES, ROWS, UNSEEN, Case, K


def _pandas(texts: list[Any]) -> Any:
    import pandas as pd

    # An index that is neither sorted nor unique.
    return pd.Series(texts, name="text", index=[i % 7 for i in range(len(texts))])


def _pandas_strings(texts: list[Any]) -> Any:
    import pandas as pd

    return pd.Series(texts, dtype="string")


def _polars(texts: list[Any]) -> Any:
    import polars as pl

    return pl.Series("text", texts)


def _arrow(texts: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array(texts)


def _arrow_chunks(texts: list[Any]) -> Any:
    import pyarrow as pa

    return pa.chunked_array([texts[:9], texts[9:]])


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "numpy objects": lambda texts: np.array(texts, dtype=object),
    "numpy strings": lambda texts: np.array([text or "" for text in texts]),
    "pandas": _pandas,
    "pandas strings": _pandas_strings,
    "polars": _polars,
    "arrow": _arrow,
    "arrow chunks": _arrow_chunks,
    "corpus": Corpus.from_texts,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_input_gives_the_same_labels(name: str) -> None:
    reference = TfIdf(K).fit(ROWS)
    column = FORMS[name](ROWS)
    np.testing.assert_array_equal(reference.predict(column), reference.predict(ROWS))
    np.testing.assert_array_equal(TfIdf(K).fit(column).labels_, reference.labels_)


def test_every_method_takes_a_column(method_case: Case, method_fitted: ClusteringMethod, tiny_encoder: Path) -> None:
    column = _pandas(ROWS)
    np.testing.assert_array_equal(method_fitted.predict(column), method_fitted.predict(ROWS))
    np.testing.assert_array_equal(method_case.make(tiny_encoder).fit(column).labels_, method_fitted.labels_)


# Texts, and what the error says about them.
REFUSED_TEXTS: list[tuple[Any, str]] = [
    ([], "no texts"),
    (["", "  ", None], "empty"),
    (["only one"], "1 distinct"),
    (["the same"] * 9, "1 distinct"),
    (["first", "second", "second", ""], "2 distinct"),
    ("a single string", "list of texts"),
    (["fine", 3, "fine too", "and this"], r"row 2 .*int"),
    ([["nested"], ["lists"], ["here"]], r"row 1 .*list"),
]


def test_input_that_cannot_be_clustered(method_case: Case, tiny_encoder: Path) -> None:
    for texts, message in REFUSED_TEXTS:
        model = method_case.make(tiny_encoder)
        with pytest.raises(InputError, match=message) as caught:
            model.fit(texts)
        assert "\n" not in str(caught.value)
        assert set(vars(model)) == set(method_case.parameters)


def test_as_many_clusters_as_texts(case: Case, tiny_encoder: Path) -> None:
    texts = DISTINCT[:4]
    model = case.make(tiny_encoder, n_clusters=4, converged=True).fit(texts)
    assert sorted(model.labels_.tolist()) == [0, 1, 2, 3]
    with pytest.raises(InputError, match="fewer clusters"):
        case.make(tiny_encoder, n_clusters=5).fit(texts)


def test_given_vectors_are_refused_by_methods_that_make_their_own(
    method_case: Case, method_fitted: ClusteringMethod, tiny_encoder: Path
) -> None:
    if method_case.takes_vectors:
        pytest.skip("takes vectors")
    vectors = np.ones((len(ROWS), 4))
    model = method_case.make(tiny_encoder)
    with pytest.raises(SettingError, match=f"embeddings= cannot be used: {method_case.info.class_name}"):
        model.fit(ROWS, embeddings=vectors)
    assert set(vars(model)) == set(method_case.parameters)
    with pytest.raises(SettingError, match="embeddings= cannot be used"):
        method_fitted.predict(ROWS, embeddings=vectors)


# --- vectors given to FrozenEncoder ---


@pytest.mark.parametrize("clusterer", CLUSTERERS_OF_FROZEN)
def test_given_vectors_give_the_labels_of_computed_ones(tiny_encoder: Path, tmp_path: Path, clusterer: str) -> None:
    settings = {"clusterer": clusterer, "encoder": str(tiny_encoder), "device": "cpu"}
    computed = FrozenEncoder(K, **settings).fit(ROWS)
    plain = FrozenEncoder(K, encoder=str(tiny_encoder), device="cpu").fit(ROWS)
    vectors, unseen = plain.transform(ROWS), plain.transform(UNSEEN)
    # What stands beside an empty text is never looked at.
    vectors[IS_EMPTY] = np.nan
    given = FrozenEncoder(K, **settings).fit(ROWS, embeddings=vectors)
    np.testing.assert_array_equal(given.labels_, computed.labels_)
    np.testing.assert_allclose(given.confidence_, computed.confidence_, atol=1e-4)
    np.testing.assert_array_equal(given.predict(UNSEEN, embeddings=unseen), computed.predict(UNSEEN))
    # A model with an encoder takes vectors as well.
    np.testing.assert_array_equal(computed.predict(UNSEEN, embeddings=unseen), computed.predict(UNSEEN))

    given.save_pretrained(tmp_path / "model")
    loaded = coterie.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.labels_, given.labels_)
    np.testing.assert_array_equal(loaded.predict(UNSEEN, embeddings=unseen), given.predict(UNSEEN, embeddings=unseen))
    for model in (given, loaded):
        for call in (model.predict, model.predict_proba, model.assign, model.transform):
            with pytest.raises(SettingError, match="given embeddings"):
                call(UNSEEN)


@pytest.mark.parametrize("clusterer", CLUSTERERS_OF_FROZEN)
def test_given_vectors_mean_the_same_in_fit_and_predict(clusterer: str) -> None:
    """Of any length: spherical k-means must scale the vectors it is given in predict as it did in fit."""
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(len(DISTINCT), 5)) * generator.uniform(0.5, 20, (len(DISTINCT), 1))
    model = FrozenEncoder(K, clusterer=clusterer).fit(DISTINCT, embeddings=vectors)
    unseen = [f"{text}, again" for text in DISTINCT]
    answer = model.assign(unseen, embeddings=vectors)
    labels, confidence = answer.labels, answer.confidence
    same = labels == model.labels_
    assert same.mean() == (pytest.approx(model.predict_agreement_) if clusterer in LINKAGES else 1)
    np.testing.assert_allclose(confidence[same], model.confidence_[same], atol=1e-6)
    chosen = model.predict_proba(unseen, embeddings=vectors)
    np.testing.assert_array_equal(chosen.argmax(axis=1), labels)
    np.testing.assert_array_equal(model.predict(DISTINCT, embeddings=vectors), model.labels_)


def test_a_model_refitted_on_texts_takes_texts_again(tiny_encoder: Path) -> None:
    model = FrozenEncoder(K, encoder=str(tiny_encoder), device="cpu")
    model.fit(DISTINCT, embeddings=np.random.default_rng(0).normal(size=(len(DISTINCT), 4)))
    fresh = FrozenEncoder(K, encoder=str(tiny_encoder), device="cpu").fit(DISTINCT)
    np.testing.assert_array_equal(model.fit(DISTINCT).predict(UNSEEN), fresh.predict(UNSEEN))


def _with(value: float) -> Any:
    vectors = np.ones((len(DISTINCT), 3))
    vectors[4, 1] = value
    return vectors


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        pytest.param(np.ones((len(DISTINCT) - 1, 3)), "one row per text", id="too few"),
        pytest.param(np.ones(len(DISTINCT)), "one row per text", id="flat"),
        pytest.param(np.ones((len(DISTINCT), 3, 2)), "one row per text", id="too deep"),
        pytest.param(np.ones((len(DISTINCT), 0)), "embeddings=", id="no columns"),
        pytest.param([[1.0, 2.0], *([[1.0]] * (len(DISTINCT) - 1))], "embeddings=", id="ragged"),
        pytest.param([["a", "b"]] * len(DISTINCT), "embeddings=", id="words"),
        pytest.param(_with(np.nan), "row 5", id="NaN"),
        pytest.param(_with(-np.inf), "row 5", id="infinity"),
    ],
)
def test_given_vectors_that_cannot_be_used(vectors: Any, message: str) -> None:
    model = FrozenEncoder(K)
    with pytest.raises(InputError, match=message):
        model.fit(DISTINCT, embeddings=vectors)


def test_given_vectors_of_another_width_are_refused_in_predict() -> None:
    vectors = np.random.default_rng(0).normal(size=(len(DISTINCT), 4))
    model = FrozenEncoder(K).fit(DISTINCT, embeddings=vectors)
    with pytest.raises(InputError, match="3 dimensions.* 4"):
        model.predict(DISTINCT, embeddings=vectors[:, :3])
