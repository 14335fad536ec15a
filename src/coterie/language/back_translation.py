"""Augmentation by translating a text into another language and back."""

from __future__ import annotations

import logging
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from coterie.checks import check_choice, check_whole
from coterie.encoders.device import autocast, resolve_device, resolve_precision
from coterie.encoders.model_loading import hide_transformers_output
from coterie.encoders.tokenization import batches_by_tokens
from coterie.encoders.weights import is_offline
from coterie.errors import ModelFolderError, WeightsNotFoundError, require_extra
from coterie.text.augmentation.base import Augmenter

logger = logging.getLogger(__name__)

STRENGTHS = ("low", "middle", "high")
# Beams of the translation into the other language: a usual number, since only the best translation is used.
PIVOT_BEAMS = 5
NEEDED_FILES = ("config.json", "vocab.json", "source.spm", "target.spm")
# Names of weight files. Most translation models of the hub have no safetensors; torch reads the other file without
# executing code from it.
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
# Tokens of all beams of a batch, by device.
TOKENS_PER_BATCH = {"cuda": 65_536, "mps": 8_192}
# Widths of batches are multiples of this number of tokens, so that few widths occur.
WIDTH_STEP = 8
# Most tokens of a translation relative to its text: few translations are twice as long, and endless ones are cut.
LONGEST_GROWTH = 2
# Additional tokens that a translation may have, for short texts.
LONGEST_EXTRA = 16
# Longest n-gram that BLEU compares, in words: its usual value.
LONGEST_RUN = 4
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class BackTranslation(Augmenter):
    """Translate a text and translate it back: another wording of the same meaning.

    Each text is translated by beam search, the best translation is translated back with a beam of ``candidates``, and
    all texts of that beam are ranked by their BLEU with the original. A strength selects two of them: the two of
    highest BLEU (``"low"``), the two middle ones, or the two of lowest BLEU (``"high"``, which the authors of SCCL
    found best); ``place`` selects one of the two, so that two views of a text are ``place=0`` and ``place=1``. Beam
    search is deterministic: the generator has no effect.

    A candidate may be equal to the text, mostly at low strength. A text longer than the limit of a translation model
    (512 tokens) is cut.

    Parameters
    ----------
    forward, backward:
        Marian models for the two directions: folders, or names on the hub.
    strength:
        Distance from the original: ``"low"``, ``"middle"`` or ``"high"``.
    place:
        Which text of the pair, 0 or 1. At low and middle strength, 0 is the text of higher BLEU; at high strength, that
        of lower BLEU.
    candidates:
        How many texts to choose from.
    device:
        Where to compute: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """

    forward: str = "Helsinki-NLP/opus-mt-en-fr"
    backward: str = "Helsinki-NLP/opus-mt-fr-en"
    strength: str = "low"
    place: int = 0
    candidates: int = 10
    device: str = "auto"

    slow: ClassVar[bool] = True

    def check(self) -> None:
        check_choice("strength", self.strength, STRENGTHS)
        check_choice("place", self.place, (0, 1))
        check_whole("candidates", self.candidates, least=2)
        resolve_device(self.device)

    def augment(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        self.check()
        require_extra("sentencepiece", "translate")
        folders = [find_translator(name) for name in (self.forward, self.backward)]  # both, before the work begins
        device = resolve_device(self.device)
        rows = [i for i, text in enumerate(texts) if text.strip()]
        originals = [texts[i] for i in rows]
        pivots = [best for (best,) in _translate(folders[0], originals, PIVOT_BEAMS, 1, device)]
        back = _translate(folders[1], pivots, self.candidates, self.candidates, device)
        result = list(texts)
        for row, original, candidates in zip(rows, originals, back, strict=True):
            chosen = choose(original, candidates, self.strength, self.place)
            result[row] = chosen if chosen.strip() else original
        return result


def choose(original: str, candidates: Sequence[str], strength: str, place: int) -> str:
    """Return the candidate of this strength and place; if BLEU is equal, the likelier one is ranked as nearer.

    >>> texts = ["a b c d", "a b c x", "a b x y", "a x y z"]
    >>> [choose("a b c d", texts, "low", place) for place in (0, 1)]
    ['a b c d', 'a b c x']
    >>> [choose("a b c d", texts, "middle", place) for place in (0, 1)]
    ['a b c x', 'a b x y']
    >>> [choose("a b c d", texts, "high", place) for place in (0, 1)]
    ['a x y z', 'a b x y']
    """
    nearest_first = sorted(candidates, key=lambda text: -sentence_bleu(text, original))
    middle = len(candidates) // 2 - 1
    return nearest_first[{"low": place, "middle": middle + place, "high": -1 - place}[strength]]


def sentence_bleu(candidate: str, reference: str) -> float:
    """Return the BLEU of one text against another, from 0 (no common word) to 1 (the same words in the same order).

    N-grams of up to four words are compared. For two and more words, one is added to the matches and to the total (Lin
    and Och 2004), since short texts rarely share four consecutive words. Case does not count, punctuation does.

    >>> sentence_bleu("the parcel is late", "The parcel is late")
    1.0
    >>> round(sentence_bleu("the letter is late", "the parcel is late"), 3)  # (3/4 * 2/4 * 1/3 * 1/2) ** (1/4)
    0.5
    """
    ours, theirs = _TOKEN.findall(candidate.casefold()), _TOKEN.findall(reference.casefold())
    if not ours or not theirs:
        return 0.0
    logs = 0.0
    for length in range(1, LONGEST_RUN + 1):
        own, expected = _ngrams(ours, length), _ngrams(theirs, length)
        matches = sum((own & expected).values())
        if length == 1 and not matches:
            return 0.0
        extra = 0 if length == 1 else 1
        logs += math.log((matches + extra) / (own.total() + extra))
    brevity = min(0.0, 1 - len(theirs) / len(ours))
    return math.exp(logs / LONGEST_RUN + brevity)


def _ngrams(tokens: list[str], length: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1))


def find_translator(name: str) -> Path:
    """Return the folder of a Marian model: a folder, ``$COTERIE_MODELS/<name>``, the hub's local cache, or the hub."""
    path = Path(name).expanduser()
    if path.is_dir():
        missing = _find_problem(path)
        if missing is None:
            return path
        raise WeightsNotFoundError(f"the folder {name} cannot be loaded as a translation model: {missing}")
    attempts = [f"folder {name}: no such folder"]
    root = os.environ.get("COTERIE_MODELS")
    if root:
        for folder in (Path(root) / name, Path(root) / name.split("/")[-1]):
            missing = _find_problem(folder)
            if missing is None:
                return folder
            attempts.append(f"COTERIE_MODELS: {folder}: {missing}")
    else:
        attempts.append("COTERIE_MODELS: not set")
    for origin, local in (("hub cache", True), ("hub", False)):
        if not local and is_offline():
            attempts.append("hub: not asked (offline)")
            continue
        found = _from_hub(name, local, origin, attempts)
        if found is not None:
            return found
    raise WeightsNotFoundError(
        f"no translation model {name!r} found. Tried: {'; '.join(attempts)}. This helps, on a machine with a network: "
        f"hf download {name} (or give the path of a folder that holds it)"
    )


def _find_problem(folder: Path) -> str | None:
    if not folder.is_dir():
        return "no such folder"
    for file in NEEDED_FILES:
        if not (folder / file).is_file():
            return f"{file} is missing"
    if not any((folder / file).is_file() for file in WEIGHT_FILES):
        return f"{' or '.join(WEIGHT_FILES)} is missing"
    return None


def _from_hub(name: str, local: bool, origin: str, attempts: list[str]) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = ["*.json", "*.spm", *WEIGHT_FILES]
    try:
        folder = Path(snapshot_download(name, allow_patterns=patterns, local_files_only=local))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        attempts.append(f"{origin}: {'not there' if local else type(error).__name__}")
        return None
    missing = _find_problem(folder)
    if missing is not None:
        attempts.append(f"{origin}: {missing}")
        return None
    return folder


def _load(folder: Path, device: torch.device) -> tuple[Any, Any]:
    """Load model and tokenizer of one direction."""
    from transformers import MarianMTModel, MarianTokenizer

    try:
        with hide_transformers_output(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # Without sacremoses, unusual quotes and dashes are translated without normalisation.
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
            tokenizer = MarianTokenizer.from_pretrained(str(folder), local_files_only=True)
            model = MarianMTModel.from_pretrained(str(folder), dtype=torch.float32, local_files_only=True)
    except Exception as error:  # its parsers raise exceptions of many types
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ModelFolderError(f"{folder} cannot be loaded as a translation model: {reason}") from error
    return model.eval().to(device), tokenizer


@torch.no_grad()
def _translate(folder: Path, texts: Sequence[str], beams: int, count: int, device: torch.device) -> list[list[str]]:
    """Return the ``count`` best translations of each text, likeliest first, by a beam search with ``beams`` beams."""
    if not texts:
        return []
    model, tokenizer = _load(folder, device)
    limit = int(model.config.max_position_embeddings)
    rows = tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
    lengths = np.asarray([len(row) for row in rows], dtype=np.int64)
    widths = -(-lengths // WIDTH_STEP) * WIDTH_STEP
    dtype = resolve_precision("auto", device) if device.type == "cuda" else torch.float32
    budget = max(1, TOKENS_PER_BATCH.get(device.type, 4_096) // beams)
    result: list[list[str]] = [[] for _ in texts]
    # The width limits the length of a translation, so that it does not depend on the other texts of a batch.
    for width in np.unique(widths):
        same_width = np.flatnonzero(widths == width)
        for part in batches_by_tokens(widths[same_width], budget):
            batch = same_width[part]
            padded = tokenizer.pad({"input_ids": [rows[i] for i in batch]}, return_tensors="pt").to(device)
            with autocast(device, dtype):
                generated = model.generate(
                    **padded,
                    num_beams=beams,
                    num_return_sequences=count,
                    do_sample=False,
                    early_stopping=True,
                    max_length=None,
                    max_new_tokens=min(limit - 1, LONGEST_GROWTH * int(width) + LONGEST_EXTRA),
                )
            decoded = tokenizer.batch_decode(generated, skip_special_tokens=True)
            for place, i in enumerate(batch):
                result[i] = decoded[place * count : (place + 1) * count]
    return result
