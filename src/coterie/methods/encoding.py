"""Methods with a transformer encoder: its settings, loading, saving."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.encoders.folder import check_settings
from coterie.errors import SettingError
from coterie.methods.base import ClusteringMethod
from coterie.methods.results import Encoded
from coterie.text.corpus import Corpus

if TYPE_CHECKING:
    from coterie.encoders.transformer import TransformerEncoder


class EncoderMethod(ClusteringMethod):
    """A :class:`ClusteringMethod` whose vectors come from a transformer.

    Parameters (stored by the subclasses' constructors)
    ---------------------------------------------------
    encoder:
        A model's name or folder.
    pooling, normalize:
        ``"auto"`` follows the model's own.
    max_length:
        Tokens a text is cut at.
    device:
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
    """

    encoder: str
    pooling: str
    normalize: bool | str
    max_length: int
    device: str

    encoder_: TransformerEncoder

    def _load_encoder(self) -> TransformerEncoder:
        from coterie.encoders.device import resolve_device
        from coterie.encoders.transformer import TransformerEncoder

        return TransformerEncoder.load(
            self.encoder,
            pooling=self.pooling,
            normalize=self.normalize,
            max_length=self.max_length,
            device=resolve_device(self.device),
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

    def _encode(self, texts: Sequence[str]) -> Encoded:
        tokens = self.encoder_.tokenize(texts)
        return Encoded(self.encoder_.encode_tokens(tokens).cpu().numpy(), tokens.truncated)

    def _encode_alone(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encoder_.encode_alone(texts)

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

        self.encoder_ = TransformerEncoder.load(folder, device=resolve_device(device))
