"""Back-translation: BLEU by hand, the choice among candidates, and the way there and back on a tiny Marian pair."""

from __future__ import annotations

import io
import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts

from coterie.errors import MissingExtraError, ModelFolderError, SettingError, WeightsNotFoundError
from coterie.language import back_translation
from coterie.language.back_translation import BackTranslation, choose, find_translator, sentence_bleu

TEXTS = [*topic_texts(9, seed=8)[0], "parcel", "the money is not returned please help again today why"]
STRENGTHS = [(strength, place) for strength in ("low", "middle", "high") for place in (0, 1)]


def _make_translator(folder: Path, seed: int) -> Path:
    """A random Marian of one layer with a SentencePiece model of the tests' words."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir(parents=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(topic_texts(200, seed=9)[0]),
        model_writer=model,
        vocab_size=70,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ordinary = [
        pieces.id_to_piece(i) for i in range(len(pieces)) if not pieces.is_control(i) and not pieces.is_unknown(i)
    ]
    vocabulary = ["</s>", "<unk>", *ordinary, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(vocabulary)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "fr"}))
    pad = len(vocabulary) - 1
    config = MarianConfig(
        vocab_size=len(vocabulary), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=40,
        pad_token_id=pad, eos_token_id=0, forced_eos_token_id=0, decoder_start_token_id=pad, init_std=0.8,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        MarianMTModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("translators")
    return str(_make_translator(root / "there", 1)), str(_make_translator(root / "back", 2))


def _augment(pair: tuple[str, str], texts: list[str], **settings: Any) -> list[str]:
    augmenter = BackTranslation(*pair, device="cpu", **settings)
    return augmenter.augment(texts, np.random.default_rng(0))


# --- BLEU ---


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("my parcel is late", "my parcel is late", 1.0),
        ("My parcel is late", "my PARCEL is late", 1.0),
        ("a b c d e", "a b x d e", (4 / 5 * 3 / 5 * 1 / 4 * 1 / 3) ** 0.25),
        ("the letter is late", "the parcel is late", 0.5),
        ("the the the", "the parcel", (1 / 3 * 1 / 3 * 1 / 2 * 1) ** 0.25),  # a word counts as often as it stands there
        ("parcel", "my parcel is late", float(np.exp(1 - 4))),  # all of it right, but much too short
        ("a b", "a b c d", float(np.exp(1 - 2))),
        ("late, again", "late again", (2 / 3 * 1 / 3 * 1 / 2 * 1) ** 0.25),  # punctuation counts
        ("letter", "parcel", 0.0),
        ("", "parcel", 0.0),
        ("parcel", "", 0.0),
    ],
)
def test_bleu_by_hand(candidate: str, reference: str, expected: float) -> None:
    assert sentence_bleu(candidate, reference) == pytest.approx(expected)


# --- The choice ---


def test_each_strength_is_a_pair_of_ranks() -> None:
    original = "a b c d e f g h i j"
    ranked = [" ".join([*original.split()[: 10 - n], *["x"] * n]) for n in range(10)]  # ever fewer words kept
    shuffled = [ranked[i] for i in np.random.default_rng(0).permutation(10)]
    ranks = [ranked.index(choose(original, shuffled, strength, place)) for strength, place in STRENGTHS]
    assert ranks == [0, 1, 4, 5, 9, 8]


# --- There and back ---


@pytest.mark.filterwarnings("ignore:Recommended")
def test_the_candidates_are_the_beam_of_the_best_translation(pair: tuple[str, str]) -> None:
    """Against transformers alone, one text at a time."""
    from transformers import MarianMTModel, MarianTokenizer

    tokenizers = [MarianTokenizer.from_pretrained(folder) for folder in pair]
    models = [MarianMTModel.from_pretrained(folder).eval() for folder in pair]

    def beam(direction: int, text: str, beams: int, count: int) -> list[str]:
        given = tokenizers[direction]([text], return_tensors="pt")
        limit = min(39, 2 * 8 * math.ceil(given["input_ids"].shape[1] / 8) + 16)
        made = models[direction].generate(
            **given, num_beams=beams, num_return_sequences=count, max_new_tokens=limit, early_stopping=True
        )
        return tokenizers[direction].batch_decode(made, skip_special_tokens=True)

    expected = {}
    for text in TEXTS:
        candidates = beam(1, beam(0, text, 5, 1)[0], 10, 10)
        assert len(set(candidates)) > 5
        expected[text] = sorted(candidates, key=lambda candidate: -sentence_bleu(candidate, text))
    for (strength, place), rank in zip(STRENGTHS, (0, 1, 4, 5, 9, 8), strict=True):
        results = _augment(pair, TEXTS, strength=strength, place=place)
        assert results == [expected[text][rank] or text for text in TEXTS]


def test_batches_are_put_back_in_order(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _augment(pair, TEXTS, candidates=4)
    assert len(set(whole)) > 5
    monkeypatch.setitem(back_translation.TOKENS_PER_BATCH, "cpu", 60)
    assert _augment(pair, TEXTS, candidates=4) == whole
    assert _augment(pair, TEXTS[::-1], candidates=4) == whole[::-1]


def test_empty_texts_stay_and_long_ones_are_cut(pair: tuple[str, str]) -> None:
    results = _augment(pair, ["", "parcel late", " \n", "parcel " * 60], candidates=2)
    assert results[0] == "" and results[2] == " \n"
    assert results[1] and results[3]
    assert _augment(pair, [""]) == [""]
    assert _augment(pair, []) == []


def test_a_blank_translation_leaves_the_text(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        back_translation, "_translate", lambda _, texts, beams, count, device: [[" "] * count for _ in texts]
    )
    assert _augment(pair, ["my parcel"]) == ["my parcel"]


def test_the_users_generators_are_left_alone(pair: tuple[str, str]) -> None:
    before, generator = torch.random.get_rng_state(), np.random.default_rng(3)
    BackTranslation(*pair, device="cpu", candidates=2).augment(["my parcel"], generator)
    assert torch.equal(before, torch.random.get_rng_state())
    assert generator.random() == np.random.default_rng(3).random()


# --- Where a model comes from ---


def test_a_model_is_found_by_name_in_the_models_folder(
    pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(pair[0], tmp_path / "opus-mt-en-xx")
    monkeypatch.setenv("COTERIE_MODELS", str(tmp_path))
    assert find_translator("Helsinki-NLP/opus-mt-en-xx") == tmp_path / "opus-mt-en-xx"


def test_older_weights_are_loaded_too(pair: tuple[str, str], tmp_path: Path) -> None:
    from safetensors.torch import load_file

    folder = tmp_path / "older"
    shutil.copytree(pair[0], folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert _augment((str(folder), pair[1]), TEXTS[:3]) == _augment(pair, TEXTS[:3])


def test_a_model_that_is_not_at_hand_names_what_was_tried_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COTERIE_MODELS", raising=False)
    with pytest.raises(WeightsNotFoundError) as caught:
        _augment(("no-one/no-such-model", "no-one/no-such-model"), TEXTS)
    for part in ("no-one/no-such-model", "COTERIE_MODELS: not set", "hub cache: not there", "offline", "hf download"):
        assert part in str(caught.value)


@pytest.mark.parametrize("file", ["vocab.json", "source.spm", "model.safetensors"])
def test_a_folder_that_lacks_a_file(pair: tuple[str, str], tmp_path: Path, file: str) -> None:
    shutil.copytree(pair[0], tmp_path / "part")
    (tmp_path / "part" / file).unlink()
    with pytest.raises(WeightsNotFoundError, match=file):
        find_translator(str(tmp_path / "part"))


def test_a_folder_that_cannot_be_read(pair: tuple[str, str], tmp_path: Path) -> None:
    shutil.copytree(pair[0], tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelFolderError, match="broken cannot be loaded as a translation model"):
        _augment((str(tmp_path / "broken"), pair[1]), TEXTS)


def test_without_sentencepiece_the_error_names_the_command(
    pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'coterie\[translate\]'"):
        _augment(pair, TEXTS)


@pytest.mark.parametrize("settings", [{"strength": "huge"}, {"place": 2}, {"candidates": 1}])
def test_settings_that_cannot_work(pair: tuple[str, str], settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        _augment(pair, TEXTS, **settings)
