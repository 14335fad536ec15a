"""Folders go back and forth between Coterie and sentence-transformers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts

from coterie.encoders.transformer import TransformerEncoder

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed"
)
TEXTS = [*topic_texts(11, seed=3)[0], "parcel " * 30]


def _loaded(folder: Path) -> Any:
    # Imported here, so that only a process that runs these tests waits for it.
    import sentence_transformers

    return sentence_transformers.SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", True), ("cls", False)])
def test_sentence_transformers_reads_what_we_write(
    tiny_encoder: Path, tmp_path: Path, pooling: str, normalize: bool
) -> None:
    encoder = TransformerEncoder.load(tiny_encoder, pooling=pooling, normalize=normalize, max_length=9)
    encoder.save(tmp_path / "ours")
    theirs = _loaded(tmp_path / "ours")
    assert theirs.max_seq_length == 9
    np.testing.assert_allclose(theirs.encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)


def test_we_read_what_sentence_transformers_writes(tiny_encoder: Path, tmp_path: Path) -> None:
    TransformerEncoder.load(tiny_encoder, pooling="max", normalize=True, max_length=9).save(tmp_path / "ours")
    theirs = _loaded(tmp_path / "ours")
    theirs.save_pretrained(str(tmp_path / "theirs"))
    again = TransformerEncoder.load(tmp_path / "theirs")
    assert (again.settings.pooling, again.settings.normalize) == ("max", True)
    assert again.max_length == 9
    np.testing.assert_allclose(again.encode(TEXTS), theirs.encode(TEXTS), atol=1e-6)
