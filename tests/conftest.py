"""What many tests share: a tiny encoder made on the spot, and texts in plain groups."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

# Tiny models gain nothing from threads, and on busy cores they lose much.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What commands print is wrapped to the terminal, which a test process may not have.
os.environ["COLUMNS"] = "120"
# Tests never ask a model hub.
os.environ["HF_HUB_OFFLINE"] = "1"

GROUPS = {
    "parcel": ["parcel", "late", "courier", "delivery", "tracking", "depot", "shipped", "doorstep"],
    "password": ["password", "login", "account", "reset", "locked", "username", "code", "email"],
    "refund": ["refund", "money", "bank", "paid", "invoice", "card", "charged", "returned"],
}
FILLERS = ["my", "the", "is", "still", "please", "again", "not", "why", "today", "help"]


def grouped_texts(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """``n`` distinct short texts and the group each was drawn from."""
    generator = np.random.default_rng(seed)
    names = list(GROUPS)
    texts: dict[str, str] = {}
    while len(texts) < n:
        name = names[len(texts) % len(names)]
        words = [*generator.choice(GROUPS[name], 3, replace=False), *generator.choice(FILLERS, 2, replace=False)]
        texts.setdefault(" ".join(generator.permutation(words)), name)
    return list(texts), list(texts.values())


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a randomly initialised BERT of two layers and a word-level WordPiece tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoders") / "tiny"
    words = [*FILLERS, *(word for group in GROUPS.values() for word in group)]
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters, *(f"##{c}" for c in letters)]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def run_folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a report; tests must leave it as it is."""
    from made_run import make_run

    return make_run(tmp_path_factory.mktemp("made"), tiny_encoder)
