"""Predict whole words for masks: find the tokens that are words, rank them, and sample from the likeliest."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.encoders.device import autocast, resolve_precision
from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.tokenization import TokenArrays, batches_by_tokens
from coterie.encoders.transformer import TOKENS_PER_FORWARD, TransformerEncoder
from coterie.errors import SettingError
from coterie.language.masked_head import MaskedHead, backbone_name

# Prefix of WordPiece tokens that continue a word.
CONTINUATION = "##"
# Prefix of byte-level BPE tokens that begin a word.
BYTE_START = "Ġ"
# Prefix of SentencePiece tokens that begin a word.
PIECE_START = "▁"
# The form number of a token that is not a word.
NO_FORM = -1
# The token of a mask without any candidate word.
NO_WORD = -1
# Weight of the cosine that is added to the logits of a head trained on few texts: chosen by reading substitutions.
LIKENESS_WEIGHT = 20.0
# States per block of logits, which bounds the memory: each state has one logit per token of the vocabulary.
STATES_PER_CHUNK = 2_048


def is_word_character(character: str) -> bool:
    """Return whether a character is a letter, a digit or a mark of a letter, in any script."""
    return unicodedata.category(character)[0] in "LNM"


def word_form(word: str) -> str:
    """Return a word without case and accents, the same for all its spellings."""
    plain = unicodedata.normalize("NFKD", word)
    return "".join(character for character in plain if not unicodedata.combining(character)).casefold()


@dataclass(frozen=True)
class WordList:
    """The tokens of a vocabulary that are whole words.

    Attributes
    ----------
    words:
        The word of each token, ``""`` for a token that is not a word: special and unused tokens, pieces that continue a
        word, punctuation, single letters (into which a tokenizer divides rare words).
    forms:
        For each token the number of its :func:`word_form`, ``-1`` for a token that is not a word.
    form_numbers:
        The number of each form.
    is_cased:
        Whether any word has a capital letter.
    """

    words: list[str]
    forms: NDArray[np.int64]
    form_numbers: dict[str, int]
    is_cased: bool

    @classmethod
    def of_encoder(cls, encoder: TransformerEncoder) -> WordList:
        tokenizer = encoder.tokenizer
        vocabulary: dict[str, int] = tokenizer.get_vocab()
        size = encoder.model.get_input_embeddings().weight.shape[0]  # type: ignore[operator]
        special = set(tokenizer.all_special_ids)
        marker = _word_marker(vocabulary)
        words = [""] * size
        forms = np.full(size, NO_FORM, dtype=np.int64)
        numbers: dict[str, int] = {}
        for token, place in vocabulary.items():
            word = _as_word(token, marker, tokenizer)
            if word and place < size and place not in special:
                words[place] = word
                forms[place] = numbers.setdefault(word_form(word), len(numbers))
        if not numbers:
            raise SettingError(
                f"the vocabulary of {backbone_name(encoder)} holds no whole words to insert; use a model such as "
                "'bert-base-uncased' or 'roberta-base'"
            )
        return cls(words, forms, numbers, any(word != word.lower() for word in words))

    @property
    def most_spellings(self) -> int:
        """The largest number of tokens with the same form."""
        return int(np.bincount(self.forms[self.forms != NO_FORM]).max())

    def form_of(self, word: str) -> int:
        """Return the number of the form of ``word``; ``-1`` for a word that is not a token."""
        return self.form_numbers.get(word_form(word), NO_FORM)


def _word_marker(vocabulary: dict[str, int]) -> str:
    """Return the prefix that separates whole words from pieces; empty where every token is a word."""
    for marker in (CONTINUATION, BYTE_START, PIECE_START):
        if any(token.startswith(marker) and token != marker for token in vocabulary):
            return marker
    return ""


def _as_word(token: str, marker: str, tokenizer: Any) -> str:
    if marker == CONTINUATION:
        word = "" if token.startswith(marker) else token
    elif marker:
        word = token.removeprefix(marker) if token.startswith(marker) else ""
        if marker == BYTE_START and not word.isascii():
            word = str(tokenizer.convert_tokens_to_string([token])).strip()  # bytes behind stand-in characters
    else:
        word = token
    is_letter = len(word) == 1 and word.lower() != word.upper()
    return word if not is_letter and all(is_word_character(character) for character in word) else ""


def masks_per_text(tokens: TokenArrays, mask_id: int) -> NDArray[np.int64]:
    """Return the number of masks in each text."""
    before = np.concatenate([[0], np.cumsum(tokens.ids == mask_id)])
    return before[tokens.starts + tokens.lengths] - before[tokens.starts]


@torch.no_grad()
def likeliest_words(
    encoder: TransformerEncoder,
    head: MaskedHead,
    tokens: TokenArrays,
    mask_id: int,
    words: WordList,
    count: int,
    like: Sequence[str] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the ``count`` likeliest words (token ids) for every mask in ``tokens``, and their logits.

    ``like`` gives a word per mask; words near it in the encoder's word embeddings are preferred.
    """
    device = encoder.device
    preferred = table = torch.empty(0)
    if like is not None:
        table = _centred_embeddings(encoder, words)
        preferred = _word_vectors(encoder, table, like)
        table = nn.functional.normalize(table, dim=-1)
    allowed = torch.from_numpy(words.forms != NO_FORM).to(device)
    count = min(count, int((words.forms != NO_FORM).sum()))
    # bfloat16 saves time on a GPU; the head uses float32, because in bfloat16 many logits are equal.
    dtype = resolve_precision("auto", device) if device.type == "cuda" else torch.float32
    # Masks are ordered by text: text i has those from first[i] to first[i + 1].
    first = np.concatenate([[0], np.cumsum(masks_per_text(tokens, mask_id))])
    ids = np.empty((int(first[-1]), count), dtype=np.int64)
    logits = np.empty((int(first[-1]), count), dtype=np.float32)

    on_device = DeviceTokens(tokens, encoder.pad_id, device)
    rows_with_masks = np.flatnonzero(np.diff(first))
    for part in batches_by_tokens(tokens.lengths[rows_with_masks], TOKENS_PER_FORWARD.get(device.type, 4_096)):
        rows = rows_with_masks[part]
        batch, mask = on_device.batch(torch.from_numpy(rows).to(device), on_device.width(rows))
        with autocast(device, dtype):
            states = encoder(batch, mask).token_states
        places = np.concatenate([np.arange(first[row], first[row + 1]) for row in rows])
        at_masks = states[batch == mask_id]
        for begin in range(0, len(places), STATES_PER_CHUNK):
            some = places[begin : begin + STATES_PER_CHUNK]
            scores = head(at_masks[begin : begin + STATES_PER_CHUNK])
            if like is not None:
                scores = scores + LIKENESS_WEIGHT * preferred[torch.from_numpy(some).to(device)] @ table.T
            values, indices = scores.masked_fill_(~allowed, float("-inf")).topk(count, dim=-1)
            ids[some], logits[some] = indices.cpu().numpy(), values.cpu().numpy()
    return ids, logits


def _centred_embeddings(encoder: TransformerEncoder, words: WordList) -> Tensor:
    """Return the encoder's word embeddings minus their mean, which all words share."""
    table: Tensor = encoder.model.get_input_embeddings().weight.detach()  # type: ignore[operator]
    are_words = torch.from_numpy(words.forms != NO_FORM).to(table.device)
    return table - table[are_words].mean(dim=0)


def _word_vectors(encoder: TransformerEncoder, table: Tensor, words: Sequence[str]) -> Tensor:
    """Return for each word the mean of its pieces' rows in ``table``, at unit length."""
    distinct = list(dict.fromkeys(words))
    # With a space before the word, without which some tokenizers treat it as the rest of another.
    pieces = encoder.tokenizer([f" {word}" for word in distinct], add_special_tokens=False)["input_ids"]
    begins = np.cumsum([0, *(len(row) for row in pieces[:-1])])
    flat = torch.tensor([piece for row in pieces for piece in row], device=table.device, dtype=torch.long)
    means = nn.functional.embedding_bag(flat, table, torch.from_numpy(begins).to(table.device), mode="mean")
    number = {word: i for i, word in enumerate(distinct)}
    return nn.functional.normalize(means, dim=-1)[[number[word] for word in words]]


def sample_words(
    ids: NDArray[np.int64],
    logits: NDArray[np.float32],
    forbidden: NDArray[np.bool_],
    top_k: int,
    draws: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Sample one token per row of candidates (likeliest first), from its ``top_k`` best that are not ``forbidden``.

    ``draws`` are uniform numbers, one per row; probabilities are renormalised over the remaining candidates. A row
    without any gives ``-1``.
    """
    takes_part = ~forbidden & (np.cumsum(~forbidden, axis=1) <= top_k)
    weights = np.where(takes_part, np.exp(logits - logits[:, :1]), 0.0).astype(np.float64)
    sums = np.cumsum(weights, axis=1)
    chosen = np.argmax(sums > draws[:, None] * sums[:, -1:], axis=1)
    return np.where(takes_part.any(axis=1), ids[np.arange(len(ids)), chosen], NO_WORD)
