"""Fixtures of the contract suite: each case is fitted and saved once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coterie.methods.base import ClusteringMethod

from .cases import CASES, ENCODER_CASES, FOLDER_CASES, METHOD_CASES, ROWS, TRAINED_CASES, Case


@pytest.fixture(scope="package", autouse=True)
def _one_thread() -> Iterator[None]:
    """Models this small gain nothing from threads, and lose much where other work shares the cores."""
    import torch
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session", params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    """Every method in every clustering."""
    return request.param


@pytest.fixture(scope="session", params=METHOD_CASES, ids=str)
def method_case(request: pytest.FixtureRequest) -> Case:
    """Every method once."""
    return request.param


@pytest.fixture(scope="session", params=ENCODER_CASES, ids=str)
def encoder_case(request: pytest.FixtureRequest) -> Case:
    """Every method with an encoder once."""
    return request.param


@pytest.fixture(scope="session", params=FOLDER_CASES, ids=str)
def folder_case(request: pytest.FixtureRequest) -> Case:
    """Every method whose saved folder is the encoder of its vectors."""
    return request.param


@pytest.fixture(scope="session", params=TRAINED_CASES, ids=str)
def trained_case(request: pytest.FixtureRequest) -> Case:
    """Every method that trains its encoder."""
    return request.param


@pytest.fixture(scope="session")
def fitted(case: Case, tiny_encoder: Path) -> ClusteringMethod:
    """The case fitted on ``ROWS``; tests look at it and leave it as it is."""
    return case.make(tiny_encoder).fit(ROWS)


@pytest.fixture(scope="session")
def saved(case: Case, fitted: ClusteringMethod, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``fitted`` was saved to; tests read it and leave it as it is."""
    folder = tmp_path_factory.mktemp("saved") / str(case)
    fitted.save_pretrained(folder)
    return folder
