"""Build the documentation site into site/ and check it (`make docs`).

    python tools/docs_site.py

Pages link to files of the repository outside docs/, which are not part of the site: on the site such a link is its text
followed by the path of the file. The build fails on warnings of zensical, on broken links, and on anything that a page
would load from another machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
DOCS, SITE = ROOT / "docs", ROOT / "site"
# Elements that load what they point to; a link does not.
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch", "manifest"}
ELSEWHERE = re.compile(r"(?:https?:)?//", re.IGNORECASE)


def without_links_out(text: str, page: Path, root: Path) -> str:
    """Return the Markdown of a page with links to files outside docs/ replaced by their text and path."""

    def plain(link: re.Match[str]) -> str:
        words, target = link[1], link[2].split("#")[0]
        if not target or ELSEWHERE.match(target) or ":" in target:
            return link[0]
        aim = (page.parent / target).resolve()
        if aim.is_relative_to(root / "docs"):
            return link[0]
        if not aim.exists():
            raise FileNotFoundError(f"{page.relative_to(root)} links to {link[2]}, which is not there")
        path = aim.relative_to(root).as_posix()
        return f"`{path}`" if words == path else f"{words} (`{path}`)"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", plain, text)


class References(HTMLParser):
    """What a page loads, what it links to, and the anchors in it."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.leads.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])
        if tag == "link" and LOADING_LINKS & set(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        if "srcset" in given:
            self.loads += [part.split()[0] for part in given["srcset"].split(",") if part.strip()]
        self.loads += _addresses(given.get("style", ""))


def complaints(site: Path) -> list[str]:
    """Return what is wrong with a built site, one sentence each."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = References()
        pages[path].feed(path.read_text(encoding="utf-8"))
    found = []
    for path, references in pages.items():
        name = path.relative_to(site)
        found += [f"{name} loads {each} from another machine" for each in references.loads if ELSEWHERE.match(each)]
        for target in {*references.leads, *references.loads}:
            parts = urlsplit(target)
            # The page 404.html is shown at any address, so its links start at the root of the site.
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if aim.is_dir():
                aim /= "index.html"
            if not aim.exists():
                found.append(f"{name} links to {target}, which is not there")
            elif parts.fragment and aim in pages and unquote(parts.fragment) not in pages[aim].places:
                found.append(f"{name} links to {target}, but that page has no such place")
    for path in sorted(site.rglob("*.css")):
        name = path.relative_to(site)
        loaded = _addresses(path.read_text(encoding="utf-8"))
        found += [f"{name} loads {each} from another machine" for each in loaded if ELSEWHERE.match(each)]
    return found


def _addresses(style: str) -> list[str]:
    urls = re.findall(r"url\(\s*['\"]?([^'\")]+)", style)
    return urls + re.findall(r"@import\s+['\"]([^'\"]+)", style)


def build(site: Path) -> None:
    """Build the site from a copy of docs/ in which no link leads out of it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(DOCS, copy / "docs")
        shutil.copy(ROOT / "mkdocs.yml", copy)
        for page in sorted(DOCS.rglob("*.md")):
            text = without_links_out(page.read_text(encoding="utf-8"), page, ROOT)
            (copy / page.relative_to(ROOT)).write_text(text, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=copy, check=True)
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(copy / "site", site)


def main() -> None:
    try:
        build(SITE)
    except FileNotFoundError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError:
        sys.exit("zensical found fault with the pages; see above")
    found = complaints(SITE)
    if found:
        sys.exit("\n".join(found))
    sys.stdout.write("Open site/index.html. The search needs a server: python -m http.server -d site\n")


if __name__ == "__main__":
    main()
