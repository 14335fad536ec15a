"""Augmentation by words that a masked language model predicts from their context (Kobayashi 2018)."""

from __future__ import annotations

import hashlib
import logging
import math
import re
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.checks import check_number, check_whole
from coterie.encoders.device import resolve_device
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.language.masked_head import MaskedHead, backbone_name, check_mask_token
from coterie.language.masked_training import train_masked_head
from coterie.language.word_prediction import (
    NO_WORD,
    WordList,
    is_word_character,
    likeliest_words,
    masks_per_text,
    sample_words,
)
from coterie.text.augmentation.base import Augmenter

logger = logging.getLogger(__name__)

# Fewest texts, over all epochs, that a new head is trained on: a small corpus is repeated.
LEAST_TEXTS = 3_000
# Most distinct texts that a new head is trained on, which bounds the time: every n-th text of a larger corpus.
MOST_TEXTS = 20_000
# Trained heads that stay in memory, one per model and corpus.
HEADS_IN_MEMORY = 4
_trained_heads: OrderedDict[tuple[str, str], dict[str, Tensor]] = OrderedDict()

Span = tuple[int, int]


@dataclass(frozen=True)
class Gap:
    """The position of a new word: it replaces ``start:end``, with ``before`` and ``after`` around it."""

    start: int
    end: int
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class _MaskedWords(Augmenter):
    """Predict the words of masks; the rest of the text is unchanged. The base of substitution and insertion."""

    model: str | None = None
    ratio: float = 0.2
    top_k: int = 10
    device: str = "auto"

    slow: ClassVar[bool] = True

    @abstractmethod
    def _gaps(self, words: list[Span], generator: np.random.Generator) -> list[Gap]:
        """Return the positions of new words in a text with these words, from left to right."""

    def check(self) -> None:
        check_number("ratio", self.ratio, above=0, below=1)
        check_whole("top_k", self.top_k, least=1)
        resolve_device(self.device)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        encoder = TransformerEncoder.load(self.model or DEFAULT_MODEL, device=resolve_device(self.device))
        encoder.requires_grad_(False)  # otherwise training a head would also compute gradients of the word embeddings
        check_mask_token(encoder)
        gaps, draws = [], []
        for text, end in zip(texts, _visible_ends(encoder, texts), strict=True):
            gaps.append(self._gaps([word for word in find_words(text) if word[1] <= end], generator))
            # Sampled here, so that a text's numbers depend neither on the model nor on later texts.
            draws.append(generator.random(len(gaps[-1])))
        if not any(gaps):
            return list(texts)
        head, is_own = _trained_head(encoder, texts)
        new_words = _predict(encoder, head, is_own, texts, gaps, self.top_k, np.concatenate(draws))
        return [fill(text, where, words) for text, where, words in zip(texts, gaps, new_words, strict=True)]


@dataclass(frozen=True)
class Contextual(_MaskedWords):
    """Replace a share of each text's words by words that a masked language model predicts in their place.

    All chosen words of a text are masked at once, each by a single mask, and each is replaced by one of the ``top_k``
    likeliest whole words, sampled by its probability and never the original word. Words are separated by white space,
    without the punctuation around them; all other characters are unchanged. If the model is uncased, a new word gets
    the capitals of the old one.

    A text of one word has no context to predict from and is unchanged; so is a text in a script without spaces. At
    least one word of a text is always kept. In a text longer than the model's limit, only words within it are chosen.

    If the model has no masked-language head (sentence encoders have none), one is first trained on the texts. It
    depends on the texts, not on the generator. This head is weak, so words near the old one in the model's word
    embeddings are also preferred. A model with its own head gives better words.

    Parameters
    ----------
    model:
        A folder or a name on the hub; ``None`` is the default encoder.
    ratio:
        Share of a text's words to replace, rounded up.
    top_k:
        How many of the likeliest words to sample from.
    device:
        Where to compute: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """

    def _gaps(self, words: list[Span], generator: np.random.Generator) -> list[Gap]:
        count = min(share(self.ratio, len(words)), len(words) - 1)
        if count < 1:
            return []
        return [Gap(*words[i]) for i in sorted(generator.choice(len(words), count, replace=False))]


@dataclass(frozen=True)
class ContextualInsertion(_MaskedWords):
    """Insert words that a masked language model predicts: for each text a share of its number of words, rounded up.

    New words are inserted before words or after the last word, each at another position. As with :class:`Contextual`,
    nothing else changes; a text of one word gets a second one, an empty text stays empty. The parameters are the same.
    """

    def _gaps(self, words: list[Span], generator: np.random.Generator) -> list[Gap]:
        if not words:
            return []
        chosen = generator.choice(len(words) + 1, share(self.ratio, len(words)), replace=False)
        behind = words[-1][1]
        return [
            Gap(words[i][0], words[i][0], after=" ") if i < len(words) else Gap(behind, behind, before=" ")
            for i in sorted(chosen)
        ]


def share(ratio: float, count: int) -> int:
    """Return ``ratio`` of ``count``, rounded up.

    >>> share(0.2, 5), share(0.2, 6), share(0.1, 30)
    (1, 2, 3)
    """
    return math.ceil(ratio * count - 1e-9)  # 0.1 * 30 is slightly more than 3


def find_words(text: str) -> list[Span]:
    """Return start and end of the words between white space, without the punctuation around them.

    >>> [text[a:b] for text in ["It's late (again)!"] for a, b in find_words(text)]
    ["It's", 'late', 'again']
    """
    words = []
    for match in re.finditer(r"\S+", text):
        start, end = match.span()
        if not match.group().isalnum():
            inside = [i for i in range(start, end) if is_word_character(text[i])]
            if not inside:
                continue
            start, end = inside[0], inside[-1] + 1
        words.append((start, end))
    return words


def fill(text: str, gaps: Sequence[Gap], words: Sequence[str | None]) -> str:
    """Return ``text`` with a word in each gap; a gap without a word is unchanged.

    >>> fill("the parcel is late", [Gap(4, 10), Gap(18, 18, before=" ")], ["letter", "again"])
    'the letter is late again'
    """
    parts, end = [], 0
    for gap, word in zip(gaps, words, strict=True):
        if word is not None:
            parts += [text[end : gap.start], gap.before, word, gap.after]
            end = gap.end
    return "".join([*parts, text[end:]])


def _visible_ends(encoder: TransformerEncoder, texts: Sequence[str]) -> list[int]:
    """Return how many characters of each text are within the model's length limit."""
    ends = [len(text) for text in texts]
    full = [int(i) for i in np.flatnonzero(encoder.tokenize(texts).lengths >= encoder.max_length)]
    if full and encoder.tokenizer.is_fast:  # others give no offsets: masks beyond the limit are lost
        cut = encoder.tokenizer(
            [texts[i] for i in full], truncation=True, max_length=encoder.max_length, return_offsets_mapping=True
        )
        for i, offsets in zip(full, cut["offset_mapping"], strict=True):
            ends[i] = max((end for _, end in offsets), default=0)
    return ends


def _predict(
    encoder: TransformerEncoder,
    head: MaskedHead,
    is_own: bool,
    texts: Sequence[str],
    gaps: list[list[Gap]],
    top_k: int,
    draws: NDArray[np.float64],
) -> list[list[str | None]]:
    """Return a word for each gap; ``None`` where its mask is beyond the length limit or no other word is known."""
    words = WordList.of_encoder(encoder)
    mask_id, mask = check_mask_token(encoder), str(encoder.tokenizer.mask_token)
    # A text that contains the mask token literally must not count as masked.
    own = (text.replace(mask, " " * len(mask)) for text in texts)
    tokens = encoder.tokenize([fill(text, where, [mask] * len(where)) for text, where in zip(own, gaps, strict=True)])
    masks = masks_per_text(tokens, mask_id)
    within_limit = [i < count for where, count in zip(gaps, masks, strict=True) for i in range(len(where))]

    old = [text[gap.start : gap.end] for text, where in zip(texts, gaps, strict=True) for gap in where]
    masked = [word for word, is_within in zip(old, within_limit, strict=True) if is_within]
    old_forms = np.asarray([words.form_of(word) for word in masked], dtype=np.int64)
    like = None if is_own or not any(masked) else masked
    ids, logits = likeliest_words(encoder, head, tokens, mask_id, words, top_k + words.most_spellings, like)
    sampled = iter(sample_words(ids, logits, words.forms[ids] == old_forms[:, None], top_k, draws[within_limit]))

    new: list[str | None] = []
    for word, is_within in zip(old, within_limit, strict=True):
        token = next(sampled) if is_within else NO_WORD
        new.append(None if token == NO_WORD else _with_capitals(words, words.words[token], word))
    flat = iter(new)
    return [[next(flat) for _ in where] for where in gaps]


def _with_capitals(words: WordList, new: str, old: str) -> str:
    """Return ``new`` with the capitals of ``old``, where the model is uncased."""
    if words.is_cased or not old[:1].isupper():
        return new
    return new.upper() if len(old) > 1 and old.isupper() else new.capitalize()


def _trained_head(encoder: TransformerEncoder, texts: Sequence[str]) -> tuple[MaskedHead, bool]:
    """Return the encoder's own head, or one trained on ``texts``, and whether it is the encoder's own."""
    head, is_own = MaskedHead.for_encoder(encoder, torch.Generator().manual_seed(0))
    if is_own:
        return head, True
    digest = hashlib.sha256("\0".join(texts).encode(errors="surrogatepass")).hexdigest()
    key = (backbone_name(encoder), digest)
    if key not in _trained_heads:
        logger.info("%s has no masked-language head; one is trained on the texts", backbone_name(encoder))
        distinct = list(dict.fromkeys(text for text in texts if text.strip()))
        some = distinct[:: -(-len(distinct) // MOST_TEXTS)]
        train_masked_head(encoder, head, some, epochs=-(-LEAST_TEXTS // len(some)), seed=0)
        _trained_heads[key] = {name: tensor.detach().cpu().clone() for name, tensor in head.state_dict().items()}
        while len(_trained_heads) > HEADS_IN_MEMORY:
            _trained_heads.popitem(last=False)
    _trained_heads.move_to_end(key)
    head.load_state_dict(_trained_heads[key])
    return head.eval(), False
