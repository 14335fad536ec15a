"""The table of augmenters, and augmenters written as a line."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pytest

from coterie.errors import SettingError
from coterie.text.augmentation import registry
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.char_swap import CharSwap
from coterie.text.augmentation.composition import Composition
from coterie.text.augmentation.eda import EDA
from coterie.text.augmentation.registry import (
    AUGMENTERS,
    RULE,
    AugmenterInfo,
    count_views,
    find_augmenter,
    parse_augmenter,
    parse_views,
)
from coterie.text.augmentation.synonyms import Synonyms
from coterie.text.augmentation.word_deletion import WordDeletion

BY_RULE = [info for info in AUGMENTERS if info.kind == RULE]


@dataclass(frozen=True)
class Placed(Augmenter):
    """Stands for the augmenters that need a language model."""

    model: str = "some"
    place: int = 0
    device: str = "auto"

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        return list(texts)


@pytest.fixture
def _placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "AUGMENTERS", (*AUGMENTERS, AugmenterInfo("placed", f"{__name__}:Placed", RULE, "-")))


# --- the table ---


def test_names_are_unique() -> None:
    assert len({info.name for info in AUGMENTERS}) == len({info.target for info in AUGMENTERS}) == len(AUGMENTERS)
    assert [info.name for info in AUGMENTERS][-3:] == ["contextual", "contextual_insertion", "back_translation"]
    assert all(find_augmenter(info.name) is info for info in AUGMENTERS)


@pytest.mark.parametrize("info", BY_RULE, ids=lambda info: info.name)
def test_every_rule(info: AugmenterInfo) -> None:
    kind = info.load()
    assert issubclass(kind, Augmenter) and kind.__name__ == info.class_name
    assert not kind.slow
    documentation = inspect.cleandoc(kind.__doc__ or "")
    assert "Parameters\n---" in documentation
    for field in fields(kind):
        assert f"\n{field.name}: " in documentation
    augmenter = parse_augmenter(info.name)
    assert augmenter == kind()
    assert augmenter.describe().startswith(f"{info.class_name}(")
    assert info.to_dict()["summary"]


# --- the grammar ---


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("word_deletion", WordDeletion()),
        ("  word_deletion ( ) ", WordDeletion()),
        ("word_deletion(ratio=0.3)", WordDeletion(0.3)),
        ("word_deletion( ratio = 3e-1 )", WordDeletion(0.3)),
        ("eda(alpha=0.2, operations=[swap, deletion])", EDA(0.2, ("swap", "deletion"))),
        ("eda(operations=['swap'],candidates=5)", EDA(operations=("swap",), candidates=5)),
        ("synonyms(candidates=None)", Synonyms(candidates=None)),
        ("synonyms(candidates=null)", Synonyms(candidates=None)),
        ("word_deletion+char_swap(ratio=0.1)", Composition(WordDeletion(), CharSwap(0.1))),
        ("eda + eda + eda", Composition(EDA(), EDA(), EDA())),
    ],
)
def test_what_can_be_written(spec: str, expected: Augmenter) -> None:
    assert parse_augmenter(spec) == expected


@pytest.mark.usefixtures("_placed")
def test_values_may_hold_anything() -> None:
    assert parse_augmenter("placed(model=some-folder/a+b)") == Placed("some-folder/a+b")
    assert parse_augmenter("placed(model='a, (b | c')") == Placed("a, (b | c")
    assert parse_augmenter('placed(model="12")') == Placed("12")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", "names no augmenter"),
        (" + eda", "names no augmenter|cannot be read"),
        ("eda+", "cannot be read"),
        ("edaa", "did you mean 'eda'.*word_deletion, random_swap"),
        ("eda(alhpa=0.1)", "'alhpa'.*alpha, operations, candidates"),
        ("eda(0.1)", "cannot be read at '0.1'"),
        ("eda(alpha=0.1, alpha=0.2)", "twice"),
        ("eda(alpha=[)", r"without an opening one"),
        ("eda(alpha=0.1", r"lacks a '\)'"),
        ("eda)", "without an opening one"),
        ("eda(alpha='0.1)", "lacks a"),
        ("eda(alpha={a: b: c})", "cannot be read"),
        ("eda(alpha=2)", "alpha=2"),
        ("eda(operations=[fly])", "fly.*swap"),
        ("eda char_swap", "cannot be read"),
        ("virtual", "setting of the method"),
        ("eda+virtual", "setting of the method"),
        ("eda | eda", "several views"),
    ],
)
def test_what_cannot_be_read_is_named(spec: str, words: str) -> None:
    with pytest.raises(SettingError, match=words) as caught:
        parse_augmenter(spec)
    assert "\n" not in str(caught.value)


def test_defaults_go_where_they_are_known_and_not_given() -> None:
    assert parse_augmenter("eda", ratio=0.4) == EDA(0.4)
    assert parse_augmenter("eda(alpha=0.3)+char_swap", ratio=0.4, device="cpu") == Composition(EDA(0.3), CharSwap(0.4))
    assert parse_augmenter("word_deletion", ratio=None) == WordDeletion()


# --- two views ---


def test_one_line_for_both_views() -> None:
    assert parse_views("eda", 0.2) == (EDA(0.2), EDA(0.2))
    assert parse_views("eda") == (EDA(), EDA())
    assert parse_views("eda(alpha=0.1) | word_deletion", 0.3) == (EDA(0.1), WordDeletion(0.3))
    assert [count_views(spec) for spec in ("eda", "eda|eda", "eda + eda")] == [1, 2, 1]
    with pytest.raises(SettingError, match="3 views"):
        parse_views("eda | eda | eda")
    with pytest.raises(SettingError, match="cannot be read|names no"):
        parse_views("eda |")
    with pytest.raises(SettingError, match="setting of the method"):
        parse_views("virtual")


@pytest.mark.usefixtures("_placed")
def test_each_view_takes_its_own_place() -> None:
    assert parse_views("placed") == (Placed(place=0), Placed(place=1))
    assert parse_views("placed(place=4)") == (Placed(place=4), Placed(place=4))
    assert parse_views("placed | placed(place=0)", device="cpu") == (Placed(device="cpu"), Placed(device="cpu"))
    first, second = parse_views("placed+eda", 0.2)
    assert (first, second) == (Composition(Placed(), EDA(0.2)), Composition(Placed(place=1), EDA(0.2)))
