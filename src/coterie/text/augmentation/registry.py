"""The table of augmenters, and the syntax in which settings and the command line specify them.

Listing the table imports no augmenter, and so neither torch nor a model. ``eda`` is an augmenter with its defaults,
``eda(alpha=0.2, operations=[swap, deletion])`` one with settings (values as in YAML),
``contextual(top_k=20)+char_swap`` applies one after the other, and ``word_deletion | eda`` uses one for each view.
"""

from __future__ import annotations

import difflib
import importlib
import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from coterie.errors import SettingError
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.composition import Composition

_SYNTAX = "write name, name(setting=value, ...), several joined by +, and the second view after |"
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\)\s*)?", flags=re.DOTALL)
# Brackets inside which separators do not count.
_PAIRS = {"(": ")", "[": "]", "{": "}"}
# Names of the setting for the share of words: ``eda`` uses the paper's symbol.
_RATIO_NAMES = ("ratio", "alpha")


@dataclass(frozen=True)
class AugmenterInfo:
    """One augmenter in the table.

    Attributes
    ----------
    name: how it is specified.
    target: ``module:Class``.
    kind: ``rule`` or ``language model``.
    summary: what it does, in a few words.
    """

    name: str
    target: str
    kind: str
    summary: str

    @property
    def class_name(self) -> str:
        return self.target.split(":")[1]

    def load(self) -> type[Augmenter]:
        """Import and return the class."""
        module, name = self.target.split(":")
        loaded: type[Augmenter] = getattr(importlib.import_module(module), name)
        return loaded

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


RULE = "rule"
LANGUAGE_MODEL = "language model"

AUGMENTERS: tuple[AugmenterInfo, ...] = (
    AugmenterInfo(
        "word_deletion", "coterie.text.augmentation.word_deletion:WordDeletion", RULE, "delete a share of the words"
    ),
    AugmenterInfo("random_swap", "coterie.text.augmentation.random_swap:RandomSwap", RULE, "exchange words"),
    AugmenterInfo(
        "random_insertion",
        "coterie.text.augmentation.random_insertion:RandomInsertion",
        RULE,
        "insert synonyms of the text's words (English)",
    ),
    AugmenterInfo(
        "synonyms",
        "coterie.text.augmentation.synonyms:Synonyms",
        RULE,
        "replace words by synonyms from WordNet (English)",
    ),
    AugmenterInfo(
        "eda",
        "coterie.text.augmentation.eda:EDA",
        RULE,
        "one of synonyms, insertion, swap and deletion, drawn at random for each text",
    ),
    AugmenterInfo(
        "char_swap",
        "coterie.text.augmentation.char_swap:CharSwap",
        RULE,
        "misspell a share of the words by one character",
    ),
    AugmenterInfo(
        "contextual",
        "coterie.language.contextual:Contextual",
        LANGUAGE_MODEL,
        "replace words by those a masked language model predicts",
    ),
    AugmenterInfo(
        "contextual_insertion",
        "coterie.language.contextual:ContextualInsertion",
        LANGUAGE_MODEL,
        "insert words that a masked language model predicts",
    ),
    AugmenterInfo(
        "back_translation",
        "coterie.language.back_translation:BackTranslation",
        LANGUAGE_MODEL,
        "translate into another language and back",
    ),
)


def find_augmenter(name: str) -> AugmenterInfo:
    """Return the augmenter called ``name``; raise with the nearest name if there is none."""
    for info in AUGMENTERS:
        if info.name == name:
            return info
    if name == "virtual":
        raise SettingError(
            "'virtual' is the encoder's own dropout, not an augmenter of texts: it is a setting of the method, "
            "augmentation='virtual', and cannot be combined"
        )
    names = [info.name for info in AUGMENTERS]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}? The" if close else "the"
    raise SettingError(f"augmenter {name!r} is unknown; {hint} augmenters are: {', '.join(names)}")


def parse_augmenter(spec: str, **defaults: Any) -> Augmenter:
    """Return the augmenter that ``spec`` describes, for one view.

    Parameters
    ----------
    spec: ``name``, ``name(setting=value, ...)``, or several of them joined by ``+``.
    defaults: values of settings that ``spec`` does not give, for augmenters that have them; None means no default.
        ``ratio`` stands for ``alpha`` in ``eda``.

    Examples
    --------
    >>> parse_augmenter("word_deletion+char_swap(ratio=0.3)", ratio=0.2).describe()
    "WordDeletion(ratio=0.2)+CharSwap(ratio=0.3, operations=('substitute', 'delete', 'insert', 'swap'))"
    """
    if len(_split_at(spec, "|", spec)) > 1:
        raise SettingError(f"augmentation {spec!r} describes several views where one is expected: leave out the |")
    parts = [_parse_single(part, spec, defaults) for part in _split_at(spec, "+", spec)]
    augmenter = parts[0] if len(parts) == 1 else Composition(*parts)
    augmenter.check()
    return augmenter


def parse_views(spec: str, ratio: float | None = None, **defaults: Any) -> tuple[Augmenter, Augmenter]:
    """Return the augmenters of two views: one for each side of ``|``, or the same for both.

    ``ratio`` is the share of words where ``spec`` gives none; other ``defaults`` as for :func:`parse_augmenter`. An
    augmenter with a ``place`` (which of several candidates it takes) gets 0 in the first view and 1 in the second.
    """
    views = _split_at(spec, "|", spec)
    if len(views) > 2:
        raise SettingError(f"augmentation {spec!r} describes {len(views)} views, and there can be two: leave out a |")
    first = parse_augmenter(views[0], ratio=ratio, **{"place": 0, **defaults})
    return first, parse_augmenter(views[-1], ratio=ratio, **{"place": 1, **defaults})


def count_views(spec: str) -> int:
    """Return how many views ``spec`` describes."""
    return len(_split_at(spec, "|", spec))


def _parse_single(part: str, spec: str, defaults: dict[str, Any]) -> Augmenter:
    match = _CALL.fullmatch(part)
    if match is None:
        raise SettingError(f"augmentation {spec!r} cannot be read at {part.strip()!r}: {_SYNTAX}")
    name, inside = match.groups()
    kind = find_augmenter(name).load()
    known = [field.name for field in fields(kind) if field.init]
    settings = _parse_settings(inside or "", spec)
    for key in settings:
        if key not in known:
            raise SettingError(f"augmenter {name!r} has no setting {key!r}; it has: {', '.join(known)}")
    for key, value in defaults.items():
        own_names = _RATIO_NAMES if key == "ratio" else (key,)
        own = next((own for own in own_names if own in known), None)
        if own is not None and value is not None:
            settings.setdefault(own, value)
    return kind(**settings)


def _parse_settings(inside: str, spec: str) -> dict[str, Any]:
    import yaml

    settings: dict[str, Any] = {}
    for pair in _split_at(inside, ",", spec) if inside.strip() else []:
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key.isidentifier():
            raise SettingError(f"augmentation {spec!r} cannot be read at {pair.strip()!r}: {_SYNTAX}")
        if key in settings:
            raise SettingError(f"augmentation {spec!r} gives {key!r} twice: leave out one")
        try:
            settings[key] = _convert_value(yaml.safe_load(value))
        except yaml.YAMLError as error:
            raise SettingError(
                f"augmentation {spec!r}: the value of {key!r} cannot be read: write it as in YAML"
            ) from error
    return settings


def _convert_value(value: Any) -> Any:
    """Return lists as tuples, which frozen dataclasses can hold; YAML reads ``1e-1`` and ``None`` as strings."""
    if isinstance(value, list):
        return tuple(_convert_value(entry) for entry in value)
    if isinstance(value, str):
        if value.lower() == "none":
            return None
        if re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value):
            return float(value)
    return value


def _split_at(text: str, separator: str, spec: str) -> list[str]:
    """Return ``text`` split at each ``separator`` outside brackets and quotes."""
    if not isinstance(text, str) or not text.strip():
        raise SettingError(f"augmentation {spec!r} names no augmenter: {_SYNTAX}")
    parts, closing, quote = [""], [], ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _PAIRS:
            closing.append(_PAIRS[character])
        elif character in _PAIRS.values():
            if not closing or closing.pop() != character:
                raise SettingError(f"augmentation {spec!r} has a {character!r} without an opening one: {_SYNTAX}")
        elif character == separator and not closing:
            parts.append("")
            continue
        parts[-1] += character
    if closing or quote:
        raise SettingError(f"augmentation {spec!r} lacks a {(quote or closing[-1])!r}: {_SYNTAX}")
    return parts
