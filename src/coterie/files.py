"""Write files and folders whole or not at all, and find the user's cache folder."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``target`` if the block succeeds, and is removed if not."""
    target = Path(os.path.abspath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield scratch
        for path in scratch.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)  # some writers allow only the owner to read
        scratch.chmod(0o755)
        if target.is_dir():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            os.replace(target, old / "folder")
            try:
                os.replace(scratch, target)
            except BaseException:
                os.replace(old / "folder", target)
                raise
            finally:
                shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def atomic_file(target: Path) -> Iterator[IO[str]]:
    """Yield a temporary text file that replaces ``target`` if the block succeeds, and is removed if not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            yield stream
        scratch.chmod(0o644)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as JSON: indented, in UTF-8, with a newline at the end."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def user_cache() -> Path:
    """Return the user's folder for what can be downloaded or made again; ``$COTERIE_CACHE`` overrides it."""
    if os.environ.get("COTERIE_CACHE"):
        return Path(os.environ["COTERIE_CACHE"]).expanduser()
    if os.environ.get("XDG_CACHE_HOME"):
        base = Path(os.environ["XDG_CACHE_HOME"])
    elif sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        base = Path(os.environ["LOCALAPPDATA"])
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "coterie"
