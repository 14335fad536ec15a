"""Load a pretrained encoder once for all steps of a fit: choose, estimate, train, calibrate, report."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.encoders.transformer import TransformerEncoder

_encoder_cache: ContextVar[dict[tuple[Any, ...], TransformerEncoder] | None] = ContextVar("encoder_cache", default=None)


@contextmanager
def keep_pretrained() -> Iterator[None]:
    """Make :func:`load_pretrained` load an encoder once within the block, and copy it afterwards.

    The unchanged weights stay in memory beside those that are trained, until the end of the block.
    """
    # A block within a block uses the cache of the outer one.
    token = _encoder_cache.set({} if (outer := _encoder_cache.get()) is None else outer)
    try:
        yield
    finally:
        _encoder_cache.reset(token)


def load_pretrained(
    name: str | os.PathLike[str], *, pooling: str, normalize: bool | str, max_length: int, device: str
) -> TransformerEncoder:
    """Return a pretrained encoder on ``device``; the caller may change it.

    The parameters are those of :meth:`~coterie.encoders.transformer.TransformerEncoder.load`, with ``device`` as
    ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """
    from coterie.encoders.device import resolve_device
    from coterie.encoders.transformer import TransformerEncoder

    def load() -> TransformerEncoder:
        return TransformerEncoder.load(
            name, pooling=pooling, normalize=normalize, max_length=max_length, device=resolve_device(device)
        )

    cache = _encoder_cache.get()
    if cache is None:
        return load()
    key = (str(name), pooling, normalize, max_length, device)
    if key not in cache:
        cache[key] = load()
    unchanged = cache[key]
    # The tokenizer is shared: it has no state that encoding or training changes.
    return copy.deepcopy(unchanged, {id(unchanged.tokenizer): unchanged.tokenizer})
