"""Fixtures of the contract suite: each case is fitted and saved once per process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import speed_up_lexical_views

from coterie.methods.base import ClusteringMethod

from .cases import CASES, CONVERGED_SETTINGS, ENCODER_CASES, FOLDER_CASES, METHOD_CASES, ROWS, TRAINED_CASES, Case

# Fitted models by name of the case and whether its head was trained to the end.
_FITTED: dict[tuple[str, bool], ClusteringMethod] = {}


def fitted_once(case: Case, encoder: Path, *, converged: bool) -> ClusteringMethod:
    """Return ``case`` fitted on ``ROWS``, the same object for every caller."""
    key = (str(case), converged and case.info.name in CONVERGED_SETTINGS)
    if key not in _FITTED:
        _FITTED[key] = case.make(encoder, converged=converged).fit(ROWS)
    return _FITTED[key]


@pytest.fixture(scope="package", autouse=True)
def _one_thread() -> Iterator[None]:
    """Compute in one thread: tiny models are not faster with more, and much slower on busy cores."""
    import torch
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="package", autouse=True)
def _quick_lexical_views() -> Iterator[None]:
    """Train the lexical views of the default method for a few steps."""
    with pytest.MonkeyPatch.context() as patch:
        speed_up_lexical_views(patch)
        yield


@pytest.fixture(scope="session", params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    """Return every method in every clustering."""
    return request.param


@pytest.fixture(scope="session", params=METHOD_CASES, ids=str)
def method_case(request: pytest.FixtureRequest) -> Case:
    """Return every method once."""
    return request.param


@pytest.fixture(scope="session", params=ENCODER_CASES, ids=str)
def encoder_case(request: pytest.FixtureRequest) -> Case:
    """Return every method with an encoder once."""
    return request.param


@pytest.fixture(scope="session", params=FOLDER_CASES, ids=str)
def folder_case(request: pytest.FixtureRequest) -> Case:
    """Return every method whose saved folder is the encoder of its vectors."""
    return request.param


@pytest.fixture(scope="session", params=TRAINED_CASES, ids=str)
def trained_case(request: pytest.FixtureRequest) -> Case:
    """Return every method that trains its encoder."""
    return request.param


@pytest.fixture
def fitted(case: Case, tiny_encoder: Path) -> ClusteringMethod:
    """Return the case fitted on ``ROWS``, a head trained to the end; tests only read it."""
    return fitted_once(case, tiny_encoder, converged=True)


@pytest.fixture
def fitted_fast(case: Case, tiny_encoder: Path) -> ClusteringMethod:
    """Return ``case.make(tiny_encoder)`` fitted on ``ROWS``; tests only read it."""
    return fitted_once(case, tiny_encoder, converged=False)


@pytest.fixture
def method_fitted(method_case: Case, tiny_encoder: Path) -> ClusteringMethod:
    """Return ``method_case.make(tiny_encoder)`` fitted on ``ROWS``; tests only read it."""
    return fitted_once(method_case, tiny_encoder, converged=False)


@pytest.fixture(scope="session")
def saved_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that ``saved`` writes to, one folder per case."""
    return tmp_path_factory.mktemp("saved")


@pytest.fixture
def saved(case: Case, fitted: ClusteringMethod, saved_folders: Path) -> Path:
    """Return the folder that ``fitted`` was saved to; tests only read it."""
    folder = saved_folders / str(case)
    if not folder.exists():
        fitted.save_pretrained(folder)
    return folder
