"""``clusters.json`` that is missing or broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from coterie.errors import InputError
from coterie.runs.clusters_file import read_card_dicts, read_cards


@pytest.mark.parametrize("content", [None, "{", "[]", '{"names": []}'])
def test_a_file_that_cannot_be_read_is_named(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "clusters.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"clusters\.json cannot be read"):
        read_card_dicts(tmp_path)


@pytest.mark.parametrize("entry", ["{}", "[]", '{"id": 0}'])
def test_clusters_of_another_form_are_refused(entry: str, tmp_path: Path) -> None:
    (tmp_path / "clusters.json").write_text(f'{{"clusters": [{entry}]}}', encoding="utf-8")
    with pytest.raises(InputError, match="does not describe clusters as a fit does"):
        read_cards(tmp_path)
