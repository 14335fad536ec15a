"""Word vectors of a vocabulary: from the encoder's word embeddings, or trained on the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import MissingExtraError, SettingError, require_extra

# Epochs of word2vec: more than its default of 5, since the corpora here are small.
WORD2VEC_EPOCHS = 20


@torch.no_grad()
def encoder_word_vectors(encoder: TransformerEncoder, words: Sequence[str]) -> NDArray[np.float32]:
    """Return the mean embedding of each word's pieces in the encoder, centred and scaled to unit length."""
    table = encoder.model.get_input_embeddings().weight.detach().cpu().numpy()  # type: ignore[operator]
    pieces = encoder.tokenizer(list(words), add_special_tokens=False)["input_ids"]
    unknown = table.mean(axis=0)
    vectors = np.stack([table[ids].mean(axis=0) if len(ids) else unknown for ids in pieces])
    return unit(vectors - vectors.mean(axis=0))


def check_word2vec() -> None:
    """Raise an error where gensim is not installed."""
    try:
        require_extra("gensim", "word2vec")
    except MissingExtraError as error:
        raise SettingError(f"word_vectors='word2vec': {error}; or use 'encoder' or 'learned'") from error


def word2vec_vectors(
    sentences: Sequence[Sequence[str]], words: Sequence[str], dimension: int, seed: int
) -> NDArray[np.float32]:
    """Train word2vec (skip-gram) on tokenised texts; it is reproducible because it uses one thread."""
    check_word2vec()
    from gensim.models import Word2Vec

    model = Word2Vec(
        [list(sentence) for sentence in sentences],
        vector_size=dimension,
        min_count=1,
        sg=1,
        workers=1,
        seed=seed,
        epochs=WORD2VEC_EPOCHS,
    )
    vectors = [model.wv[word] if word in model.wv else np.zeros(dimension) for word in words]
    return unit(np.asarray(vectors))


def unit(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return rows scaled to length one; rows of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
