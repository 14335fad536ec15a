"""Contextual views: which words change, what they become, and that all else stays."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import FILLERS, TOPICS, topic_texts

from coterie.encoders.transformer import TransformerEncoder
from coterie.errors import SettingError
from coterie.language import contextual
from coterie.language.contextual import Contextual, ContextualInsertion, find_words
from coterie.language.masked_head import MaskedHead
from coterie.language.word_prediction import WordList, sample_words

WORDS = {*FILLERS, *(word for topic in TOPICS.values() for word in topic)}
TEXTS = [
    *topic_texts(20, seed=2)[0],
    "My parcel, which is late:  please   help!\n",
    "(refund) the money - again & again... why?",
    "PASSWORD reset of my Account isn't the code; user's e-mail locked 3 days",
]


@pytest.fixture(scope="module")
def masked_model(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny tokenizer with a random BERT that brings its head."""
    from transformers import BertConfig, BertForMaskedLM

    folder = tmp_path_factory.mktemp("masked") / "bert"
    config = BertConfig(**json.loads((tiny_encoder / "config.json").read_text()))
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = BertForMaskedLM(config)
        with torch.no_grad():
            # Sharp preferences that hang on the context, so that a wrong place would show.
            model.cls.predictions.transform.LayerNorm.weight.fill_(20.0)
    model.save_pretrained(folder)
    for file in tiny_encoder.glob("tokenizer*"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def byte_level_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random RoBERTa with a byte-level tokenizer made of the tests' words."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([*topic_texts(200, seed=9)[0], *[" Café déjà"] * 50], trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    named = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), special, strict=False))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, cls_token="<s>", sep_token="</s>", **named)
    from tokenizers import AddedToken

    fast.add_special_tokens({"mask_token": AddedToken("<mask>", lstrip=True)})
    folder = tmp_path_factory.mktemp("masked") / "roberta"
    config = RobertaConfig(
        vocab_size=len(fast), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=66,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(4)
        RobertaForMaskedLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def _augment(augmenter: Any, texts: Sequence[str], seed: int = 0) -> list[str]:
    return augmenter.augment(texts, np.random.default_rng(seed))


def _substitute(folder: Path, texts: Sequence[str], seed: int = 0, **settings: Any) -> list[str]:
    return _augment(Contextual(str(folder), device="cpu", **settings), texts, seed)


def _insert(folder: Path, texts: Sequence[str], seed: int = 0, **settings: Any) -> list[str]:
    return _augment(ContextualInsertion(str(folder), device="cpu", **settings), texts, seed)


def _split(text: str) -> tuple[list[str], list[str]]:
    """The words of a text, and what stands around them."""
    spans = find_words(text)
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return [text[a:b] for a, b in spans], [text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]


# --- Substitution ---


@pytest.mark.parametrize("ratio", [0.1, 0.2, 0.3, 0.6])
def test_the_asked_share_of_words_changes_and_nothing_else(masked_model: Path, ratio: float) -> None:
    for text, other in zip(TEXTS, _substitute(masked_model, TEXTS, ratio=ratio), strict=True):
        (words, around), (others, other_around) = _split(text), _split(other)
        assert around == other_around
        changed = [b for a, b in zip(words, others, strict=True) if a != b]
        assert len(changed) == math.ceil(ratio * len(words) - 1e-9)
        assert {word.lower() for word in changed} <= WORDS


def test_a_new_word_is_never_the_old_one_whatever_its_capitals(masked_model: Path) -> None:
    texts = ["My Parcel IS Late today", "my parcel is late today"] * 20
    for text, other in zip(texts, _substitute(masked_model, texts, top_k=len(WORDS)), strict=True):
        changed = [(a, b) for a, b in zip(text.split(), other.split(), strict=True) if a != b]
        assert len(changed) == 1
        assert changed[0][0].lower() != changed[0][1].lower()


def test_capitals_are_carried_over_where_the_model_has_none(masked_model: Path) -> None:
    for text in ("PARCEL LATE AGAIN TODAY", "Parcel Late Again Today"):
        same = str.isupper if text.isupper() else str.istitle
        assert all(same(word) for other in _substitute(masked_model, [text] * 10) for word in other.split())


def test_the_likeliest_word_is_put_in_its_place(masked_model: Path) -> None:
    """One word a text, the best one: against transformers alone, one text at a time."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(masked_model)
    model = AutoModelForMaskedLM.from_pretrained(masked_model).eval()
    texts = [text for text in TEXTS if len(text.split()) == 5]
    found = set()
    for text, other in zip(texts, _substitute(masked_model, texts, top_k=1), strict=True):
        words, others = text.split(), other.split()
        (place,) = [i for i in range(5) if words[i] != others[i]]
        encoded = tokenizer(" ".join([*words[:place], "[MASK]", *words[place + 1 :]]), return_tensors="pt")
        with torch.no_grad():
            logits = model(**encoded).logits[0, place + 1]
        assert others[place] == max(WORDS - {words[place]}, key=lambda word: logits[tokenizer.vocab[word]])
        found.add(others[place])
    assert len(found) > 2  # the context matters, or a wrong position would not be noticed


def test_one_word_and_no_word_stay_and_at_least_one_word_of_two_does(masked_model: Path) -> None:
    texts = ["", "parcel", "  \n", "?!", "(late)", "parcel late", ""]
    result = _substitute(masked_model, texts, ratio=0.9)
    assert [result[i] for i in (0, 1, 2, 3, 4, 6)] == [texts[i] for i in (0, 1, 2, 3, 4, 6)]
    assert sum(a == b for a, b in zip(result[5].split(), ["parcel", "late"], strict=True)) == 1
    assert _substitute(masked_model, []) == []
    assert _substitute(masked_model, ["", "parcel"]) == ["", "parcel"]


def test_beyond_the_models_limit_nothing_is_touched(masked_model: Path) -> None:
    long = " ".join(["parcel late courier again today"] * 40)  # 200 words, 62 of them seen
    words = long.split()
    for augmented in (_substitute(masked_model, [long, "my parcel is late"], ratio=0.3)[0],):
        others = augmented.split()
        changed = [i for i in range(200) if words[i] != others[i]]
        assert len(changed) == math.ceil(0.3 * 62)
        assert max(changed) < 62
    inserted = _insert(masked_model, [long], ratio=0.3)[0].split()
    assert 0 < len(inserted) - 200 <= math.ceil(0.3 * 62)
    assert inserted[-130:] == words[-130:]


def test_a_text_that_speaks_of_the_mask_token(masked_model: Path) -> None:
    texts = ["why is [MASK] not the code [MASK] today", "my parcel is late again"]
    first, second = _substitute(masked_model, texts)
    assert first.count("[") == 2
    assert [a != b for a, b in zip(_split(texts[0])[0], _split(first)[0], strict=True)].count(True) == 2
    assert second.split()[0] in WORDS and second != texts[1]


# --- Insertion ---


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.6])
def test_insertion_adds_words_and_keeps_the_rest(masked_model: Path, ratio: float) -> None:
    for text, other in zip(TEXTS, _insert(masked_model, TEXTS, ratio=ratio), strict=True):
        words, others = _split(text)[0], _split(other)[0]
        assert len(others) - len(words) == math.ceil(ratio * len(words) - 1e-9)
        rest = iter(others)
        assert all(word in rest for word in words)  # the old words, in their order
        assert re.sub(r"[^\W_]|\s", "", other) == re.sub(r"[^\W_]|\s", "", text)


def test_inserted_words_stand_at_any_place_and_before_closing_punctuation(masked_model: Path) -> None:
    results = _insert(masked_model, ["parcel late!"] * 60)
    shapes = {tuple(word.strip("!") in {"parcel", "late"} for word in result.split()) for result in results}
    assert shapes >= {(False, True, True), (True, False, True), (True, True, False)}
    assert all(re.fullmatch(r"\w+ \w+ \w+!", result) for result in results)
    assert _insert(masked_model, ["", "parcel"])[0] == ""
    assert len(_insert(masked_model, ["parcel"])[0].split()) == 2


# --- Seeds and company ---


@pytest.mark.parametrize("make", [_substitute, _insert])
def test_the_same_seed_gives_the_same_texts_whatever_follows(masked_model: Path, make: Any) -> None:
    first = make(masked_model, TEXTS, seed=5)
    assert make(masked_model, TEXTS, seed=5) == first
    assert make(masked_model, TEXTS, seed=6) != first
    assert make(masked_model, [*TEXTS, "parcel " * 40, "why not today"], seed=5)[: len(TEXTS)] == first
    assert make(masked_model, TEXTS[:7], seed=5) == first[:7]


# --- Which tokens are words ---


def test_byte_level_words_begin_words(byte_level_model: Path) -> None:
    words = WordList.of_encoder(TransformerEncoder.load(byte_level_model))
    assert {"parcel", "Café", "déjà"} <= set(words.words)
    assert words.is_cased
    vocabulary = TransformerEncoder.load(byte_level_model).tokenizer.get_vocab()
    pieces = {token: place for token, place in vocabulary.items() if len(token) > 1 and "Ġ" not in token}
    assert len(pieces) > 20
    assert {words.words[place] for place in pieces.values()} == {""}
    assert words.form_of("CAFE") == words.form_of("café") != -1
    texts = TEXTS[:20]
    for make, added in ((_substitute, 0), (_insert, 1)):
        for text, other in zip(texts, make(byte_level_model, texts, top_k=50), strict=True):
            assert len(other.split()) == len(text.split()) + added
            assert set(other.split()) - set(text.split()) <= set(words.words) - {""}
            assert "Ġ" not in other and "<" not in other


def test_pieces_special_tokens_and_single_letters_are_no_words(masked_model: Path) -> None:
    encoder = TransformerEncoder.load(masked_model)
    assert set(WordList.of_encoder(encoder).words) - {""} == WORDS
    encoder.tokenizer.get_vocab = lambda: {"[PAD]": 0, "##ing": 5, "b": 6, "!": 7, "[unused3]": 8}
    with pytest.raises(SettingError, match="holds no whole words"):
        WordList.of_encoder(encoder)


def test_words_are_drawn_by_their_renormalised_probability() -> None:
    n = 20_000
    ids = np.tile([7, 8, 9, 10], (n, 1))
    logits = np.tile(np.log([0.4, 0.3, 0.2, 0.1]), (n, 1)).astype(np.float32)
    forbidden = np.tile([False, True, False, False], (n, 1))
    drawn = sample_words(ids, logits, forbidden, 2, np.random.default_rng(0).random(n))
    assert set(drawn) == {7, 9}
    assert np.mean(drawn == 7) == pytest.approx(2 / 3, abs=0.02)
    assert sample_words(ids[:1], logits[:1], np.ones((1, 4), dtype=bool), 2, np.array([0.5])).tolist() == [-1]


# --- Refusals ---


@pytest.mark.parametrize("settings", [{"ratio": 0.0}, {"ratio": 1.0}, {"top_k": 0}, {"device": "abacus"}])
def test_settings_that_cannot_work(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        Contextual(**settings).augment(["my parcel is late"], np.random.default_rng(0))


def test_a_model_without_a_mask_token(masked_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "unmasked"
    shutil.copytree(masked_model, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    del settings["mask_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(SettingError, match="unmasked has no mask token"):
        _substitute(folder, TEXTS)


# --- A model without a head ---


def test_a_head_is_trained_once_for_the_same_texts(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Sequence[str]] = []

    def train(encoder: TransformerEncoder, head: MaskedHead, texts: Sequence[str], **_: Any) -> None:
        trained.append(texts)
        with torch.no_grad():
            head.bias[encoder.tokenizer.vocab["refund"]] = 100.0

    monkeypatch.setattr(contextual, "train_masked_head", train)
    contextual._trained_heads.clear()
    texts = ["my parcel is late", "", "my parcel is late", "the login code"]
    first = _substitute(tiny_encoder, texts, seed=1)
    assert trained == [["my parcel is late", "the login code"]]
    assert [text.split().count("refund") for text in first] == [1, 0, 1, 1]
    assert all(text.split().count("refund") == 1 for text in _insert(tiny_encoder, texts, seed=2) if text)
    assert len(trained) == 1
    _substitute(tiny_encoder, texts[::-1])
    assert len(trained) == 2


def test_such_a_head_favours_words_like_the_old_one(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contextual, "train_masked_head", lambda *_, **__: None)
    encoder = TransformerEncoder.load(tiny_encoder)
    embeddings = encoder.model.get_input_embeddings().weight.detach().numpy()  # type: ignore[operator]
    vectors = {word: embeddings[encoder.tokenizer.vocab[word]] for word in WORDS}
    centre = np.mean(list(vectors.values()), axis=0)
    units = {word: (v - centre) / np.linalg.norm(v - centre) for word, v in vectors.items()}
    ranks = []
    for text, other in zip(TEXTS[:20], _substitute(tiny_encoder, TEXTS[:20], top_k=1), strict=True):
        ((old, new),) = [(a, b) for a, b in zip(text.split(), other.split(), strict=True) if a != b]
        ranks.append(sorted(WORDS, key=lambda word: -float(units[word] @ units[old])).index(new))
    assert np.mean(ranks) < 4  # 17 were they not favoured; 1 is the nearest other word


def test_the_default_encoder_learns_to_substitute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contextual, "LEAST_TEXTS", 600)
    colours = {"red", "green", "blue", "black", "white"}
    things = {"car", "door", "shirt", "house", "table", "chair"}
    texts = [f"the colour of the {thing} is {colour}" for thing in sorted(things) for colour in sorted(colours)]
    results = _augment(Contextual(ratio=0.4, top_k=3, device="cpu"), texts)
    pairs = [pair for a, b in zip(texts, results, strict=True) for pair in zip(a.split(), b.split(), strict=True)]
    new_colours = [b for a, b in pairs if a in colours and a != b]
    assert len(new_colours) >= 8
    assert np.mean([word in colours for word in new_colours]) > 0.6
    new_things = [b for a, b in pairs if a in things and a != b]  # mostly their plurals
    assert len(new_things) >= 8
    assert not {"the", "colour", "of", "is"} & set(new_things)
