"""The wheel holds the package, all of it and nothing else; tools/release_check.py installs and runs it."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import release_check  # noqa: E402

pytest.importorskip("hatchling", reason="hatchling is not installed: pip install -e '.[dev]'")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (built,) = release_check.build(tmp_path_factory.mktemp("dist"), targets=("wheel",))
    return built


def test_the_wheel_holds_the_package(wheel: Path) -> None:
    release_check.check_wheel(wheel)
    names = release_check.wheel_names(wheel)
    for needed in ("coterie/py.typed", "coterie/app/page/explorer.html", "coterie/datasets/support/topics.csv"):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    release_check.check_version(wheel)


def _changed(wheel: Path, folder: Path, *, without: str = "\0", more: str = "") -> Path:
    """A copy of the wheel without one file, or with another one."""
    made = folder / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            if not name.endswith(without):
                new.writestr(name, old.read(name))
        if more:
            new.writestr(more, "")
    return made


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"without": "explorer.js"}, r"lacks coterie/app/page/explorer\.js"),
        ({"more": "coterie/benchmark/papers/sccl.py"}, "also holds"),
        ({"more": "tests/conftest.py"}, "also holds"),
    ],
)
def test_a_wrong_wheel_is_refused(change: dict[str, str], complaint: str, wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(release_check.ReleaseError, match=complaint):
        release_check.check_wheel(_changed(wheel, tmp_path, **change))


def test_a_version_without_an_entry_is_refused(wheel: Path, tmp_path: Path) -> None:
    other = shutil.copy(wheel, tmp_path / "coterie-99.0-py3-none-any.whl")
    with pytest.raises(release_check.ReleaseError, match=r"no section for 99\.0"):
        release_check.check_version(Path(other))


def test_a_failing_command_is_reported(tmp_path: Path) -> None:
    with pytest.raises(release_check.ReleaseError, match="no such thing"):
        release_check.run([sys.executable, "-c", "raise SystemExit('no such thing')"], tmp_path)
    assert release_check.run([sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))"], tmp_path) == (
        "None\n"
    )
