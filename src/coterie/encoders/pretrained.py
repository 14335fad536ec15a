"""Load a pretrained encoder once for all that a fit does with it: choose, estimate, train, calibrate, report."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.encoders.transformer import TransformerEncoder

_kept: ContextVar[dict[tuple[Any, ...], TransformerEncoder] | None] = ContextVar("kept_encoders", default=None)


@contextmanager
def keep_pretrained() -> Iterator[None]:
    """Within the block, :func:`load_pretrained` loads an encoder once and copies it from then on.

    The unchanged weights are held beside those that are trained, and forgotten at the end of the block.
    """
    # A block within a block keeps to the outer one.
    token = _kept.set({} if (outer := _kept.get()) is None else outer)
    try:
        yield
    finally:
        _kept.reset(token)


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

    kept = _kept.get()
    if kept is None:
        return load()
    key = (str(name), pooling, normalize, max_length, device)
    if key not in kept:
        kept[key] = load()
    unchanged = kept[key]
    # The tokenizer is shared: it has no state that encoding or training changes.
    return copy.deepcopy(unchanged, {id(unchanged.tokenizer): unchanged.tokenizer})
