"""Files for people who carry on: links lead somewhere, hooks check what `make lint` checks, templates are valid."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / ".github").rglob("*.md"))]
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
# Lines of the README; everything longer belongs into docs/.
LONGEST_README = 110
# Files that git tracks: results are packed, so that a clone stays light.
MOST_FILES = 900


def _page(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _anchors(page: Path) -> set[str]:
    """The places of a page that a link can lead to, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=_page)
def test_links_and_images_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), target
        if anchor and aim.suffix == ".md":
            assert anchor in _anchors(aim), target


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST_README


def test_the_repository_is_light() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) < MOST_FILES


def _hooks() -> list[dict[str, Any]]:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert repository["repo"] == "local", "a hook of another repository needs the network"
    return repository["hooks"]


def test_hooks_check_what_make_lint_checks() -> None:
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert lint is not None
    checked = set(re.findall(r"tools/\w+\.py", lint[1]))
    entries = [hook["entry"] for hook in _hooks()]
    assert checked <= set(re.findall(r"tools/\w+\.py", " ".join(entries)))
    assert any("ruff check" in entry for entry in entries)
    assert any("ruff format" in entry for entry in entries)


def test_hooks_name_files_that_exist() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.*"), *(ROOT / "docs").rglob("*.*"))]
    files += [path.relative_to(ROOT).as_posix() for path in (*(ROOT / "tools").glob("*.py"), *ROOT.glob("src/*/*.py"))]
    for hook in _hooks():
        assert hook["language"] == "system"
        for tool in re.findall(r"tools/\w+\.py", hook["entry"]):
            assert (ROOT / tool).is_file()
        if "files" in hook:
            assert any(re.search(hook["files"], file) for file in files), hook["id"]


@pytest.mark.parametrize("template", TEMPLATES, ids=_page)
def test_issue_templates_are_valid(template: Path) -> None:
    content = yaml.safe_load(template.read_text(encoding="utf-8"))
    if template.name == "config.yml":
        assert set(content) == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= set(content)
    questions = [part for part in content["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in questions}) == len(questions)
    assert all(part["attributes"]["label"] for part in questions)
