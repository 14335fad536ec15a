"""save_pretrained and load: everything comes back, nothing foreign is touched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie
from coterie import TfIdf
from coterie.errors import CoterieError, ModelFolderError
from coterie.methods.base import ClusteringMethod

from .cases import CASES, DISTINCT, ROWS, UNSEEN, Case, K, contents, training
from .conftest import fitted_once

ALLOWED = {".json", ".safetensors", ".txt"}


def test_everything_comes_back(case: Case, fitted: ClusteringMethod, saved: Path) -> None:
    loaded = coterie.load(saved, device="cpu")
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    arrays = {name for name, value in vars(fitted).items() if isinstance(value, np.ndarray)}
    assert {"labels_", "confidence_", "center_distance_", "cluster_centers_"} <= arrays
    for name in arrays:
        found, expected = getattr(loaded, name), getattr(fitted, name)
        assert found.dtype == expected.dtype, name
        np.testing.assert_array_equal(found, expected, err_msg=name)
    assert loaded.notes_ == fitted.notes_
    assert loaded.history_ == fitted.history_
    if case.is_linkage:
        assert loaded.predict_agreement_ == fitted.predict_agreement_


def test_a_loaded_model_can_be_fitted_again(method_fitted: ClusteringMethod, tmp_path: Path) -> None:
    method_fitted.save_pretrained(tmp_path / "model")
    again = coterie.load(tmp_path / "model", device="cpu").fit(ROWS)
    np.testing.assert_array_equal(again.labels_, method_fitted.labels_)
    np.testing.assert_allclose(again.cluster_centers_, method_fitted.cluster_centers_, atol=1e-6)


def test_only_plain_files_are_written(saved: Path) -> None:
    files = [path for path in saved.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= ALLOWED
    # Pickles and the zip archives that torch wraps them in, whatever the name.
    assert not any(path.read_bytes()[:2] in {b"\x80\x02", b"\x80\x04", b"\x80\x05", b"PK"} for path in files)
    # No scratch folders are left beside it.
    assert {path.name for path in saved.parent.iterdir()} <= {str(case) for case in CASES}


def test_the_folder_stands_alone(encoder_case: Case, tiny_encoder: Path, tmp_path: Path) -> None:
    encoder = shutil.copytree(tiny_encoder, tmp_path / "encoder")
    model = encoder_case.make(encoder).fit(ROWS)
    model.save_pretrained(tmp_path / "model")
    shutil.rmtree(encoder)
    moved = shutil.move(tmp_path / "model", tmp_path / "elsewhere")
    np.testing.assert_array_equal(coterie.load(moved, device="cpu").predict(UNSEEN), model.predict(UNSEEN))


def test_parent_folders_are_made_and_a_run_folder_is_understood(tmp_path: Path) -> None:
    model = TfIdf(K).fit(ROWS)
    model.save_pretrained(str(tmp_path / "deep" / "run" / "model"))
    for folder in (tmp_path / "deep" / "run", str(tmp_path / "deep" / "run" / "model")):
        np.testing.assert_array_equal(coterie.load(folder).labels_, model.labels_)


def test_numpy_scalars_and_paths_as_parameters(method_case: Case, tiny_encoder: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"n_clusters": np.int64(K), "random_state": np.int32(4)}
    if method_case.has_encoder:
        settings["encoder"] = tiny_encoder
    if method_case.info.trains_encoder:
        settings["training"] = training(learning_rate=np.float32(0.5), tolerance=np.float64(0.25))
    model = method_case.make(tiny_encoder, **settings).fit(ROWS)
    model.save_pretrained(tmp_path / "model")
    params = coterie.load(tmp_path / "model", device="cpu").get_params()
    assert params["n_clusters"] == K and params["random_state"] == 4
    if method_case.has_encoder:
        assert params["encoder"] == str(tiny_encoder)
    if method_case.info.trains_encoder:
        assert (params["training__learning_rate"], params["training__tolerance"]) == (0.5, 0.25)


def test_saving_twice_replaces(
    method_case: Case, method_fitted: ClusteringMethod, tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    second = method_case.make(tiny_encoder, n_clusters=2).fit(UNSEEN)
    method_fitted.save_pretrained(folder)
    second.save_pretrained(folder)
    loaded = coterie.load(folder, device="cpu")
    np.testing.assert_array_equal(loaded.labels_, second.labels_)
    np.testing.assert_array_equal(loaded.cluster_centers_, second.cluster_centers_)
    # Also a loaded model into the folder it came from.
    loaded.save_pretrained(folder)
    np.testing.assert_array_equal(coterie.load(folder, device="cpu").predict(UNSEEN), second.predict(UNSEEN))
    assert list(tmp_path.iterdir()) == [folder]


def test_another_method_takes_the_place_of_the_first(method_fitted: ClusteringMethod, tmp_path: Path) -> None:
    method_fitted.save_pretrained(tmp_path / "model")
    TfIdf(K).fit(ROWS).save_pretrained(tmp_path / "model")
    assert isinstance(coterie.load(tmp_path / "model"), TfIdf)


def test_saving_again_replaces_the_folder_as_a_whole(tmp_path: Path) -> None:
    model = TfIdf(K).fit(ROWS)
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "leftover.json").write_text("{}", encoding="utf-8")
    model.save_pretrained(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["coterie.json", "coterie.safetensors"]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    model = TfIdf(K).fit(ROWS)
    model.save_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(coterie.load(tmp_path / "model").labels_, model.labels_)


@pytest.mark.parametrize("kind", ["folder", "file", "encoder"])
def test_what_is_not_ours_is_left_alone(
    method_fitted: ClusteringMethod, tiny_encoder: Path, tmp_path: Path, kind: str
) -> None:
    target = tmp_path / "precious"
    if kind == "folder":
        target.mkdir()
        (target / "thesis.txt").write_text("years of work", encoding="utf-8")
    elif kind == "encoder":
        shutil.copytree(tiny_encoder, target)
    else:
        target.write_text("years of work", encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(ModelFolderError, match="not written by Coterie"):
        method_fitted.save_pretrained(target)
    assert contents(tmp_path) == before
    assert list(tmp_path.iterdir()) == [target]


# --- folders that cannot be loaded ---


@pytest.fixture(scope="module")
def word_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words") / "model"
    TfIdf(K).fit(DISTINCT).save_pretrained(folder)
    return folder


def _edit(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], Any]:
    def edit(folder: Path) -> None:
        meta = json.loads((folder / "coterie.json").read_text(encoding="utf-8"))
        change(meta)
        (folder / "coterie.json").write_text(json.dumps(meta), encoding="utf-8")

    return edit


KEYS = ("format", "method", "params", "notes", "predict_agreement", "history", "extra")
DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "broken JSON": (lambda folder: (folder / "coterie.json").write_text('{"format": 1,'), "cannot be read"),
    "not an object": (lambda folder: (folder / "coterie.json").write_text("[1, 2]"), "coterie.json|cannot be read"),
    "another format": (_edit(lambda meta: meta.update(format=99)), "format 99, this version reads 1"),
    "an unknown method": (_edit(lambda meta: meta.update(method="zzz")), "zzz"),
    "an unknown parameter": (_edit(lambda meta: meta["params"].update(zzz=1)), "zzz"),
    "no arrays": (lambda folder: (folder / "coterie.safetensors").unlink(), "coterie.safetensors"),
    "cut arrays": (lambda folder: (folder / "coterie.safetensors").write_bytes(b"\0" * 20), "cannot be read"),
    "no clusters": (lambda folder: (folder / "coterie.json").unlink(), "coterie.json is missing"),
    **{f"no {key}": (_edit(lambda meta, key=key: meta.pop(key)), key) for key in KEYS},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_folders_are_named(word_folder: Path, tmp_path: Path, name: str) -> None:
    damage, message = DAMAGE[name]
    folder = shutil.copytree(word_folder, tmp_path / "damaged")
    damage(folder)
    with pytest.raises(ModelFolderError, match=message) as caught:
        coterie.load(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json", "modules.json"])
def test_damaged_encoders_are_named(encoder_case: Case, tiny_encoder: Path, tmp_path: Path, file: str) -> None:
    fitted_once(encoder_case, tiny_encoder, converged=False).save_pretrained(tmp_path / "model")
    (tmp_path / "model" / file).write_bytes(b"{ damaged")
    with pytest.raises(CoterieError, match=str(tmp_path)):
        coterie.load(tmp_path / "model")


def test_missing_folders(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="no such folder"):
        coterie.load(tmp_path / "nothing here")
    (tmp_path / "a file").write_text("", encoding="utf-8")
    with pytest.raises(ModelFolderError, match="no such folder"):
        coterie.load(tmp_path / "a file")
    with pytest.raises(ModelFolderError, match="not a folder written by Coterie"):
        coterie.load(tmp_path)


def test_everybody_may_read_a_saved_folder(fitted: ClusteringMethod, tmp_path: Path) -> None:
    fitted.save_pretrained(tmp_path / "model")
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in (tmp_path / "model").rglob("*"))


def test_not_fitted_is_also_what_scikit_learn_calls_it() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        TfIdf(K).predict(["late parcel"])


def test_a_method_that_is_not_registered_is_not_saved(tmp_path: Path) -> None:
    class OwnMethod(coterie.TfIdf):
        pass

    model = OwnMethod(2).fit(["late parcel", "parcel late", "lost password"])
    with pytest.raises(ModelFolderError, match="OwnMethod is not a registered method"):
        model.save_pretrained(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_seed_that_nobody_gave_is_saved(tmp_path: Path) -> None:
    model = TfIdf(2, random_state=None).fit(["late parcel", "parcel late", "lost password"])
    model.save_pretrained(tmp_path / "model")
    assert coterie.load(tmp_path / "model").seed_ == model.seed_ > 0
