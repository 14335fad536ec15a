"""Augmented texts on disk, and whether an augmenter did anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from coterie import files
from coterie.errors import InputError
from coterie.text.augmentation import cache
from coterie.text.augmentation.base import Augmenter, check_changes, unchanged_share
from coterie.text.augmentation.cache import augment_with_cache, cache_file, cache_folder, is_cached
from coterie.text.augmentation.composition import Composition
from coterie.text.augmentation.word_deletion import WordDeletion

TEXTS = ["where is my parcel", "", "two\nlines  and\u2028more", "包裹 \"quoted\" 'text'", "where is my parcel"]
calls: list[int] = []


@dataclass(frozen=True)
class Counting(Augmenter):
    """Records every call."""

    mark: str = "!"

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        calls.append(len(texts))
        return [f"{text}{self.mark}{generator.integers(1000)}" for text in texts]


@dataclass(frozen=True)
class Other(Counting):
    """The same settings under another name."""


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    calls.clear()


def test_the_second_time_is_read(tmp_path: Path) -> None:
    first = augment_with_cache(Counting(), TEXTS, [3, 1], tmp_path)
    assert first == Counting().augment(TEXTS, np.random.default_rng([3, 1]))
    calls.clear()
    assert is_cached(Counting(), TEXTS, [3, 1], tmp_path)
    assert augment_with_cache(Counting(), TEXTS, [3, 1], tmp_path) == first
    assert calls == []
    assert [path.name for path in tmp_path.iterdir()] == [cache_file(Counting(), TEXTS, [3, 1], tmp_path).name]


@pytest.mark.parametrize(
    ("augmenter", "texts", "seed"),
    [
        (Counting("?"), TEXTS, 0),
        (Other(), TEXTS, 0),
        (Composition(Counting(), Counting()), TEXTS, 0),
        (Counting(), TEXTS, 1),
        (Counting(), TEXTS, [0, 0]),
        (Counting(), ["where is my parceI", *TEXTS[1:]], 0),
        (Counting(), TEXTS[::-1], 0),
        (Counting(), TEXTS[:-1], 0),
        (Counting(), [*TEXTS, ""], 0),
    ],
)
def test_whatever_differs_is_made_anew(
    tmp_path: Path, augmenter: Augmenter, texts: list[str], seed: int | list[int]
) -> None:
    augment_with_cache(Counting(), TEXTS, 0, tmp_path)
    calls.clear()
    assert not is_cached(augmenter, texts, seed, tmp_path)
    assert augment_with_cache(augmenter, texts, seed, tmp_path) == augmenter.augment(texts, np.random.default_rng(seed))
    assert calls
    assert len(list(tmp_path.iterdir())) == 2


def test_texts_do_not_run_together(tmp_path: Path) -> None:
    paths = {cache_file(Counting(), texts, 0, tmp_path) for texts in (["a", "b"], ["ab"], ["a\nb"], ['a"\n"b'])}
    assert len(paths) == 4


def test_another_version_makes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_file(Counting(), TEXTS, 0, tmp_path)
    monkeypatch.setattr(cache, "__version__", "0.0.0")
    assert cache_file(Counting(), TEXTS, 0, tmp_path) != before


@pytest.mark.parametrize("damage", ["cut", "no gzip", "empty", "fewer", "numbers", "flipped", "a folder"])
def test_a_damaged_file_is_replaced(tmp_path: Path, damage: str) -> None:
    import gzip

    expected = augment_with_cache(Counting(), TEXTS, 0, tmp_path)
    path = cache_file(Counting(), TEXTS, 0, tmp_path)
    whole = path.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    else:
        broken = {
            "cut": whole[:-12],
            "no gzip": b"texts",
            "empty": b"",
            "fewer": gzip.compress(b"".join(lines[:-1])),
            "numbers": gzip.compress(b"".join([*lines[:-1], b"3\n"])),
            "flipped": whole[:30] + bytes([whole[30] ^ 255]) + whole[31:],
        }
        path.write_bytes(broken[damage])
    calls.clear()
    assert augment_with_cache(Counting(), TEXTS, 0, tmp_path) == expected
    assert calls
    if damage != "a folder":
        assert path.read_bytes() == whole


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    assert len(augment_with_cache(Counting(), TEXTS, 0, tmp_path / "file" / "deeper")) == len(TEXTS)


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path / "augmentations"
    augment_with_cache(WordDeletion(), TEXTS, 0)
    assert len(list((tmp_path / "augmentations").iterdir())) == 1
    monkeypatch.delenv("COTERIE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    for platform, ending in (
        ("linux", ".cache/coterie/augmentations"),
        ("darwin", "Library/Caches/coterie/augmentations"),
        ("win32", "local/coterie/augmentations"),
    ):
        monkeypatch.setattr(files.sys, "platform", platform)
        assert cache_folder().as_posix().endswith(ending)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "coterie" / "augmentations"


def test_a_description_holds_every_setting() -> None:
    assert WordDeletion(0.3).describe() == "WordDeletion(ratio=0.3)"
    assert Composition(WordDeletion(0.3), Counting("?")).describe() == "WordDeletion(ratio=0.3)+Counting(mark='?')"


def test_the_share_of_texts_left_alone() -> None:
    assert unchanged_share(["a", "b", "", " "], ["a", "c", "", " "]) == 0.5
    assert unchanged_share([], []) == unchanged_share([""], [""]) == 0.0
    with pytest.raises(ValueError):
        unchanged_share(["a"], [])


def test_an_augmenter_that_changes_nothing_is_named() -> None:
    check_changes("synonyms", ["a", "b"], ["a", "c"])
    check_changes("synonyms", ["", " "], ["", " "])
    with pytest.raises(InputError, match=r"synonyms changed no text \(of 2\).*choose another"):
        check_changes("synonyms", ["a", "b"], ["a", "b"])
