"""Write src/coterie/__init__.pyi: the public names as type checkers and editors read them.

    python tools/public_names.py            write it
    python tools/public_names.py --check    fail if it is not up to date

At run time ``coterie/__init__.py`` loads its names when they are first used, from the registry of methods and a short
table; a type checker cannot follow that.
"""

from __future__ import annotations

import sys
from pathlib import Path

import coterie

STUB = Path(coterie.__file__).with_suffix(".pyi")
NOTE = "# Written by tools/public_names.py from the registry of methods; do not edit."


def stub() -> str:
    """Return the content of the stub file."""
    names = {"__version__": "coterie.version"} | coterie._PUBLIC
    lines = [f"from {module} import {name} as {name}" for name, module in names.items()]
    return "\n".join([NOTE, "", *sorted(lines), ""])


def main() -> None:
    if "--check" in sys.argv[1:]:
        if not STUB.is_file() or STUB.read_text(encoding="utf-8") != stub():
            sys.exit("src/coterie/__init__.pyi is not up to date: run `make readme`")
        return
    STUB.write_text(stub(), encoding="utf-8")


if __name__ == "__main__":
    main()
