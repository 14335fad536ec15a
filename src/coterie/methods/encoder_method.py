"""Base of methods with a transformer encoder: its parameters, loading and saving."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.sentence_transformer_files import check_settings
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.errors import SettingError
from coterie.methods.base import ClusteringMethod
from coterie.methods.results import Encoded
from coterie.text.corpus import Corpus

if TYPE_CHECKING:
    import torch

    from coterie.encoders.transformer import TransformerEncoder


# Fewest texts for which embeddings are first computed in bfloat16; fewer texts take little time in float32.
QUICK_FROM = 2_000
# Texts on which the rounding noise of bfloat16 is measured.
NOISE_TEXTS = 256
# Factor on the largest noise measured: that of other texts may be larger.
NOISE_FACTOR = 3.0


@dataclass(kw_only=True, eq=False, repr=False)
class EncoderMethod(ClusteringMethod):
    """A :class:`ClusteringMethod` whose vectors come from a transformer.

    Parameters
    ----------
    encoder:
        Name or folder of a model.
    pooling, normalize:
        How token states become a sentence embedding, and whether that has unit length; ``"auto"`` takes the model's
        own setting.
    max_length:
        Tokens after which a text is cut.
    device:
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """

    encoder: str = DEFAULT_MODEL
    pooling: str = "auto"
    normalize: bool | str = "auto"
    max_length: int = 64
    device: str = "auto"

    encoder_: TransformerEncoder = field(init=False)
    # Whether a trial on a few texts predicts the cost of a fit (see :mod:`coterie.methods.cost_estimate`).
    _can_be_tried: ClassVar[bool] = True
    _measured_noise: float | None = field(default=None, init=False)

    def load_encoder(self) -> TransformerEncoder:
        """Load the pretrained encoder that the parameters name, on the device they name."""
        from coterie.encoders.pretrained import load_pretrained

        return load_pretrained(
            self.encoder,
            pooling=self.pooling,
            normalize=self.normalize,
            max_length=self.max_length,
            device=self.device,
        )

    def _check_settings(self) -> None:
        super()._check_settings()
        if not isinstance(self.encoder, (str, os.PathLike)):
            raise SettingError(f"encoder={self.encoder!r} must be a model's name or a folder")
        check_settings(self.pooling, self.normalize, self.max_length)

    def _note_truncated(self, truncated: int, corpus: Corpus) -> None:
        if truncated:
            self._note(
                f"{truncated:,} of {len(corpus.distinct):,} distinct texts had more than "
                f"{self.encoder_.max_length} tokens and were cut (max_length)"
            )

    def _quick_dtype(self, n_texts: int) -> torch.dtype:
        """Return bfloat16 for many texts where the hardware has it; unclear assignments are recomputed in float32."""
        import torch

        from coterie.encoders.device import resolve_precision

        return resolve_precision("auto", self.encoder_.device) if n_texts >= QUICK_FROM else torch.float32

    def _noise(self, texts: Sequence[str], dtype: torch.dtype) -> float:
        """Return the largest relative error of vectors in ``dtype``, measured once on some of the texts."""
        import torch

        if dtype == torch.float32:
            return 0.0
        if self._measured_noise is None:
            some = [texts[i] for i in np.linspace(0, len(texts) - 1, NOISE_TEXTS).astype(int)]
            exact = self.encoder_.encode(some)
            off = np.linalg.norm(self.encoder_.encode(some, dtype) - exact, axis=1)
            self._measured_noise = float(NOISE_FACTOR * (off / np.maximum(np.linalg.norm(exact, axis=1), 1e-12)).max())
        return self._measured_noise

    def _encode(self, texts: Sequence[str]) -> Encoded:
        dtype = self._quick_dtype(len(texts))
        features, truncated = self.encoder_.encode_and_count_truncated(texts, dtype)
        return Encoded(features, truncated, self._noise(texts, dtype))

    def _encode_exactly(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encoder_.encode(texts)

    def _encode_one_by_one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encoder_.encode_one_by_one(texts)

    def provenance(self) -> dict[str, str | None]:
        return {"device": str(self.encoder_.device), "encoder_from": self.encoder_.origin}

    def _save_parts(self, folder: Path) -> dict[str, Any]:
        self.encoder_.save(folder)
        return {}

    def _restore_parts(
        self, folder: Path, state: Mapping[str, NDArray[Any]], extra: Mapping[str, Any], device: str
    ) -> None:
        from coterie.encoders.device import resolve_device
        from coterie.encoders.transformer import TransformerEncoder

        self.encoder_ = TransformerEncoder.load(folder, device=resolve_device(device), light=True)
