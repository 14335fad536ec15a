"""Check that a release works: build it, install the wheel into an empty environment, run the demo from there.

    python tools/release_check.py                 everything; takes some minutes and a package index
    python tools/release_check.py --no-install    build and look at the files only
    python tools/release_check.py --keep DIR      leave the wheel, the sdist and the demo's run in DIR

The environment has only what the wheel asks for with its extra ``offline``, at the versions of constraints.txt. The
commands run in an empty folder, so nothing of the checkout can help them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "coterie"
CONSTRAINTS = ROOT / "constraints.txt"
# Kinds of files that a wheel without them would miss: pages, tables, data, types.
NEEDED_ENDINGS = (".html", ".js", ".css", ".toml", ".csv", ".gz", ".pyi", ".typed")
# What only belongs to the repository.
NOT_SHIPPED = ("benchmarks/", "tests/", "tools/", "docs/", "experiments/", "benchmark/papers")
# Files that `coterie demo` must leave behind.
DEMO_FILES = ("assignments.csv", "clusters.json", "run.json", "report.html", "model")


class ReleaseError(Exception):
    """A sentence about what is wrong with the release."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def package_files() -> set[str]:
    """Every file of the package, as a wheel names it."""
    paths = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in paths}


def build(folder: Path, source: Path = ROOT, targets: tuple[str, ...] = ("wheel", "sdist")) -> list[Path]:
    """Build with the hatchling of this environment; no network is used."""
    kinds = [argument for target in targets for argument in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", *kinds, "-d", str(folder)]
    finished = subprocess.run(command, cwd=source, capture_output=True, text=True)
    if finished.returncode:
        raise ReleaseError(f"hatchling cannot build {source}: {finished.stderr.strip()}")
    return sorted(folder.iterdir())


def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def check_wheel(wheel: Path) -> None:
    """The package's files, all of them, and nothing else but the metadata."""
    names = wheel_names(wheel)
    shipped = {name for name in names if ".dist-info/" not in name}
    missing, extra = package_files() - shipped, shipped - package_files()
    if missing:
        raise ReleaseError(f"{wheel.name} lacks {', '.join(sorted(missing)[:5])}")
    if extra:
        raise ReleaseError(f"{wheel.name} also holds {', '.join(sorted(extra)[:5])}")
    for ending in NEEDED_ENDINGS:
        if not any(name.endswith(ending) for name in shipped):
            raise ReleaseError(f"{wheel.name} holds no {ending} file")
    for place in NOT_SHIPPED:
        found = sorted(name for name in shipped if name.startswith(place) or f"coterie/{place}" in name)
        if found:
            raise ReleaseError(f"{wheel.name} holds {found[0]}, which belongs to the repository only")


def check_sdist(sdist: Path, wheel: Path, folder: Path) -> None:
    """A wheel built from the sdist holds the same files."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    (unpacked,) = (folder / "source").iterdir()
    (folder / "again").mkdir()
    (again,) = build(folder / "again", unpacked, ("wheel",))
    different = wheel_names(wheel) ^ wheel_names(again)
    if different:
        raise ReleaseError(f"the wheel built from {sdist.name} differs: {', '.join(sorted(different)[:5])}")


def check_version(wheel: Path) -> None:
    """The changelog has a section for the version of the wheel."""
    version = wheel.name.split("-")[1]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if version not in headings:
        raise ReleaseError(f"CHANGELOG.md has no section for {version}; it has: {', '.join(headings)}")


def run(command: list[str], folder: Path, **variables: str) -> str:
    """What a command prints, in an environment that does not know the checkout."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    finished = subprocess.run(
        command,
        cwd=folder,
        env=inherited | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    if finished.returncode:
        raise ReleaseError(f"{' '.join(command)} failed:\n{finished.stdout[-3000:]}")
    return finished.stdout


def install(wheel: Path, folder: Path) -> Path:
    """The folder of the programs of a new environment with the wheel in it."""
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    python = str(programs / "python")
    # torch first and pinned: left to the resolver it would pull gigabytes of GPU packages on a CPU machine.
    torch = re.search(r"^torch==.*$", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert torch is not None
    pip = [python, "-m", "pip", "install", "-q", "-c", str(CONSTRAINTS)]
    run([*pip, torch[0]], folder)
    run([*pip, f"{wheel}[offline]"], folder)
    run([python, "-m", "pip", "check"], folder)
    return programs


def check_commands(programs: Path, folder: Path) -> None:
    """Help, demo and predict, run from the installed wheel in an empty folder."""
    empty = folder / "empty"
    empty.mkdir()
    where = run([str(programs / "python"), "-c", "import coterie; print(coterie.__file__)"], empty).strip()
    if not Path(where).resolve().is_relative_to((folder / "environment").resolve()):
        raise ReleaseError(f"coterie was imported from {where}, not from the new environment")
    coterie = str(programs / "coterie")
    if "demo" not in run([coterie, "--help"], empty):
        raise ReleaseError("coterie --help does not list the command demo")
    # A hub is not needed: the extra `offline` brings the weights.
    run([coterie, "demo", "--output", "demo-run"], empty, HF_HUB_OFFLINE="1")
    missing = [name for name in DEMO_FILES if not (empty / "demo-run" / name).exists()]
    if missing:
        raise ReleaseError(f"coterie demo did not write {', '.join(missing)}")
    (empty / "new.csv").write_text("text\nmy parcel is late\n", encoding="utf-8")
    run([coterie, "predict", "demo-run", "new.csv", "-o", "out.csv"], empty, HF_HUB_OFFLINE="1")
    if len((empty / "out.csv").read_text(encoding="utf-8").splitlines()) != 2:
        raise ReleaseError("coterie predict did not write one row per text")


def check(folder: Path, install_too: bool) -> None:
    (folder / "dist").mkdir()
    sdist, wheel = sorted(build(folder / "dist"), key=lambda path: path.suffix != ".gz")
    check_wheel(wheel)
    check_sdist(sdist, wheel, folder)
    check_version(wheel)
    say(f"{wheel.name} and {sdist.name} hold what they should")
    if install_too:
        programs = install(wheel, folder)
        say("installed into an empty environment")
        check_commands(programs, folder)
        say("coterie --help, demo and predict work there")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--no-install", action="store_true", help="build and look at the files only")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave wheel, sdist and the demo's run there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            check(folder, not options.no_install)
        except ReleaseError as error:
            sys.exit(str(error))
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            for made in (folder / "dist", folder / "empty"):
                if made.exists():
                    shutil.copytree(made, options.keep, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
