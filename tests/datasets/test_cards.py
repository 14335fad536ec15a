"""Every card is complete, and true of its file where the files are at hand ($COTERIE_DATA)."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from coterie.datasets.cards import DatasetCard, dataset_card, list_datasets
from coterie.datasets.loading import content_digest
from coterie.datasets.sources import CONVERTERS, Table, read_csv
from coterie.errors import DatasetNotFoundError

CARDS = list_datasets()
PUBLIC = [card for card in CARDS if not card.bundled]
PAPERS = {"SCCL", "AECL", "DECCRL", "ClusterBERT", "UFTC"}


def by_name(card: DatasetCard) -> str:
    return card.name


def test_twenty_three_public_sets_and_one_bundled() -> None:
    assert len(PUBLIC) == 23
    assert [card.name for card in CARDS if card.bundled] == ["support"]
    assert len({card.sha256 for card in PUBLIC}) == len({card.content_digest for card in PUBLIC}) == 23


@pytest.mark.parametrize("card", CARDS, ids=by_name)
def test_card_is_complete(card: DatasetCard) -> None:
    assert card.title and card.treatment and card.licence
    assert card.kind in {"clustering", "ranking"}
    assert set(card.papers) <= PAPERS
    assert not (card.tuning_only and card.papers)
    assert card.fetchable != bool(card.why_not_fetchable)
    assert bool(card.splits) == ("split" in card.extra_columns)


@pytest.mark.parametrize("card", PUBLIC, ids=by_name)
def test_public_card_says_how_it_is_recognised(card: DatasetCard) -> None:
    assert re.fullmatch("[0-9a-f]{64}", card.sha256)
    assert re.fullmatch("[0-9a-f]{64}", card.content_digest)
    if card.repository:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", card.repository)
        assert re.fullmatch("[0-9a-f]{40}", card.commit)
    if card.fetchable:
        assert card.repository and card.paths
        assert card.source_format in CONVERTERS


def test_every_converter_is_used() -> None:
    assert {card.source_format for card in CARDS if card.fetchable} == set(CONVERTERS)


def test_unknown_name_is_answered_with_close_ones() -> None:
    with pytest.raises(DatasetNotFoundError, match="'googlenews_t'"):
        dataset_card("GoogleNews-T")
    with pytest.raises(DatasetNotFoundError, match="known are: agnews, .*support"):
        dataset_card("zzzzzz")


def test_import_is_light() -> None:
    code = "import sys, coterie.datasets; print([m for m in sys.modules if m.startswith('coterie.datasets.')])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert answer.stdout.strip() == "[]"


def real_file(card: DatasetCard) -> bytes:
    folder = os.environ.get("COTERIE_DATA")
    if not folder:
        pytest.skip("COTERIE_DATA is not set: the data files are not part of the project")
    path = Path(folder) / f"{card.name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in COTERIE_DATA")
    return path.read_bytes()


def figures(table: Table) -> dict[str, float]:
    texts, sizes = table.column("text"), Counter(table.column("label"))
    return {
        "classes": len(sizes),
        "words_per_text": sum(len(text.split()) for text in texts) / len(texts),
        "imbalance": max(sizes.values()) / min(sizes.values()),
        "duplicate_rows": len(texts) - len(set(texts)),
    }


@pytest.mark.parametrize("card", PUBLIC, ids=by_name)
def test_card_is_true_of_its_file(card: DatasetCard) -> None:
    data = real_file(card)
    assert hashlib.sha256(data).hexdigest() == card.sha256
    table = read_csv(gzip.decompress(data))
    assert set(table.columns) == set(card.columns)
    assert len(table.rows) == card.rows
    assert content_digest(card, table) == card.content_digest
    if card.splits:
        assert set(table.column("split")) == set(card.splits)
    if card.kind == "clustering":
        for field, value in figures(table).items():
            assert value == pytest.approx(getattr(card, field), abs=0.051), field
