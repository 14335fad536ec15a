"""Finding, checking, fetching and loading, on small made files and a server on this machine."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from coterie.datasets import cards, loading, sources
from coterie.datasets.cards import DatasetCard
from coterie.datasets.loading import (
    cache_folder,
    fetch_dataset,
    find_dataset,
    load_dataset,
    load_table,
)
from coterie.datasets.sources import Table
from coterie.errors import DatasetNotFoundError, SettingError

ROWS = (("1", "null"), ("2", "nan"), ("1", 'a "quoted", text'), ("2", "naïve café"))
TABLE = Table(("label", "text"), ROWS)
PUBLIC_FILE = 'label,text0,text1\r\n1,null,x\r\n2,nan,y\r\n1,"a ""quoted"",\n text ",z\r\n2,naïve  café,w\r\n'


def digest_of(rows: tuple[tuple[str, ...], ...]) -> str:
    return hashlib.sha256("".join(f"{label}\t{text}\n" for label, text, *_ in rows).encode()).hexdigest()


MADE = DatasetCard(
    name="made",
    title="Made for the tests",
    treatment="raw",
    licence="CC0",
    repository="someone/some-data",
    commit="0" * 40,
    paths=("some folder/made.csv",),
    source_format="aecl_csv",
    sha256="f" * 64,
    content_digest=digest_of(ROWS),
)
SPLIT_ROWS = (("x", "one", "train"), ("y", "two", "test"), ("x", "three", "train"))
SPLIT = dataclasses.replace(
    MADE,
    name="made_split",
    extra_columns=("split",),
    splits=("train", "test"),
    source_format="",
    why_not_fetchable="it was drawn",
    content_digest=digest_of(SPLIT_ROWS),
)


@pytest.fixture(autouse=True)
def own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of its own, no data folder, two made cards, and a public repository that does not answer."""
    for key in ("COTERIE_DATA", "COTERIE_OFFLINE", "HF_HUB_OFFLINE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(loading, "PUBLIC_HOME", "http://127.0.0.1:9")
    known = {**cards._cards(), "made": MADE, "made_split": SPLIT}
    monkeypatch.setattr(cards, "_cards", lambda: known)


@pytest.fixture
def data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("COTERIE_DATA", str(folder))
    return folder


class PublicHome:
    """What the local server serves: address path -> bytes; everything else is 404."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []


@pytest.fixture
def public_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[PublicHome]:
    home = PublicHome()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            home.asked.append(self.path)
            body = home.files.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setattr(loading, "PUBLIC_HOME", f"http://127.0.0.1:{server.server_port}")
    yield home
    server.shutdown()
    server.server_close()
    thread.join()


ADDRESS = f"/someone/some-data/{'0' * 40}/some%20folder/made.csv"


def in_cache() -> list[str]:
    return sorted(path.name for path in cache_folder().iterdir()) if cache_folder().exists() else []


# The bundled set


def test_bundled_set_loads_without_files_or_network() -> None:
    data = load_dataset("support", offline=True)
    assert len(data.texts) == len(data.labels) == len(data.extra["id"]) > 100
    assert len(set(data.labels) - {None}) == data.card.classes == 12
    assert "" not in data.labels
    known = set(data.extra["id"])
    assert {other for other in data.extra["duplicate_of"] if other} <= known
    path = find_dataset("support")
    assert path is not None and path.is_file()


# Found on this machine


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_data_folder_is_used_and_words_like_null_stay_text(data_folder: Path, ending: str) -> None:
    data = sources.write_csv(TABLE)
    path = data_folder / f"made{ending}"
    path.write_bytes(gzip.compress(data) if ending == ".csv.gz" else data)
    assert find_dataset("made") == path
    loaded = load_dataset("made", offline=True)
    assert loaded.texts == tuple(text for _, text in ROWS)
    assert loaded.labels == ("1", "2", "1", "2")
    assert loaded.extra == {}


def test_data_folder_goes_before_the_cache(data_folder: Path) -> None:
    cache_folder().mkdir(parents=True)
    for folder in (cache_folder(), data_folder):
        (folder / "made.csv").write_bytes(sources.write_csv(TABLE))
    assert find_dataset("made") == data_folder / "made.csv"
    (data_folder / "made.csv").unlink()
    assert find_dataset("made") == cache_folder() / "made.csv"


def test_file_sum_alone_is_enough(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(sources.write_csv(TABLE))
    card = dataclasses.replace(MADE, sha256=hashlib.sha256(data).hexdigest(), content_digest="0" * 64)
    monkeypatch.setattr(cards, "_cards", lambda: {"made": card})
    (data_folder / "made.csv.gz").write_bytes(data)
    assert len(load_dataset("made").texts) == 4


def test_other_content_is_refused_and_both_sums_are_named(data_folder: Path) -> None:
    (data_folder / "made.csv").write_text("label,text\n1,other\n", encoding="utf-8")
    found = digest_of((("1", "other"),))
    with pytest.raises(DatasetNotFoundError, match=f"{MADE.content_digest}, found .* and {found}"):
        load_dataset("made")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("made.csv", b"label,words\n1,a\n", "lacks the column 'text'"),
        ("made.csv", b"label,text\n1,a,b\n", "row 1 has 3 fields"),
        ("made.csv", b"", "lacks the column 'label'"),
        ("made.csv", b"label,text\n1,\xff\n", "cannot be read"),
        ("made.csv.gz", b"not gzip", "cannot be read"),
        ("made.csv.gz", gzip.compress(b"label,text\n" * 99, mtime=0)[:-9], "cannot be read"),
    ],
)
def test_damaged_file_is_named(data_folder: Path, name: str, content: bytes, said: str) -> None:
    (data_folder / name).write_bytes(content)
    with pytest.raises(DatasetNotFoundError, match=said):
        load_dataset("made")


def test_split(data_folder: Path) -> None:
    (data_folder / "made_split.csv").write_bytes(sources.write_csv(Table(("label", "text", "split"), SPLIT_ROWS)))
    assert load_dataset("made_split").texts == ("one", "two", "three")
    train = load_dataset("made_split", split="train")
    assert (train.texts, train.labels, train.extra["split"]) == (
        ("one", "three"),
        ("x", "x"),
        ("train", "train"),
    )
    with pytest.raises(SettingError, match="split='dev' .* train, test"):
        load_dataset("made_split", split="dev")
    with pytest.raises(SettingError, match="no splits"):
        load_dataset("made", split="train")


def test_ranking_set_is_no_clustering_set() -> None:
    with pytest.raises(SettingError, match=r"ranking set.*load_table"):
        load_dataset("semeval2016_cqa")


# Not found


def test_not_found_lists_what_was_tried_and_what_helps() -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("made", offline=True)
    said = str(caught.value)
    for part in ("COTERIE_DATA (not set)", str(cache_folder()), "offline", "coterie datasets fetch made"):
        assert part in said
    assert "\n" not in said


def test_not_fetchable_says_why() -> None:
    with pytest.raises(DatasetNotFoundError, match="it was drawn.*set COTERIE_DATA"):
        load_dataset("made_split")
    with pytest.raises(DatasetNotFoundError, match="it was drawn.*set COTERIE_DATA"):
        fetch_dataset("made_split")
    with pytest.raises(DatasetNotFoundError, match="part of the package"):
        fetch_dataset("support")


@pytest.mark.parametrize("key", ["COTERIE_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_setting_asks_nobody(public_home: PublicHome, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    public_home.files[ADDRESS] = PUBLIC_FILE.encode()
    monkeypatch.setenv(key, "1")
    with pytest.raises(DatasetNotFoundError, match="offline"):
        load_dataset("made")
    with pytest.raises(DatasetNotFoundError, match="unset it"):
        fetch_dataset("made")
    assert public_home.asked == []


# Fetching


def test_fetch_converts_checks_and_keeps(public_home: PublicHome) -> None:
    public_home.files[ADDRESS] = PUBLIC_FILE.encode()
    loaded = load_dataset("made")
    assert loaded.texts == tuple(text for _, text in ROWS)
    assert in_cache() == ["made.csv.gz"]
    assert load_dataset("made", offline=True) == loaded
    assert fetch_dataset("made") == find_dataset("made")
    assert public_home.asked == [ADDRESS]
    fetch_dataset("made", force=True)
    assert public_home.asked == [ADDRESS, ADDRESS]


def test_fetch_replaces_a_damaged_cached_file(public_home: PublicHome) -> None:
    public_home.files[ADDRESS] = PUBLIC_FILE.encode()
    cache_folder().mkdir(parents=True)
    (cache_folder() / "made.csv.gz").write_bytes(b"half a fi")
    fetch_dataset("made")
    assert len(load_dataset("made", offline=True).texts) == 4


def test_wrong_content_names_both_digests_and_leaves_nothing(public_home: PublicHome) -> None:
    public_home.files[ADDRESS] = b"label,text0,text1\n1,other,x\n"
    found = digest_of((("1", "other"),))
    with pytest.raises(DatasetNotFoundError, match=f"{MADE.content_digest}, found {found}"):
        fetch_dataset("made")
    assert in_cache() == []


def test_wrong_format_and_404_leave_nothing(public_home: PublicHome) -> None:
    public_home.files[ADDRESS] = b"<html>moved</html>"
    with pytest.raises(DatasetNotFoundError, match="cannot be read as aecl_csv"):
        fetch_dataset("made")
    public_home.files.clear()
    with pytest.raises(DatasetNotFoundError, match="answered 404"):
        fetch_dataset("made")
    with pytest.raises(DatasetNotFoundError, match=r"its public repository \(.*404.*coterie datasets fetch made"):
        load_dataset("made")
    assert in_cache() == []


def test_no_server_at_all() -> None:
    with pytest.raises(DatasetNotFoundError, match="could not be reached"):
        fetch_dataset("made")


def test_oversized_answer_is_refused(public_home: PublicHome, monkeypatch: pytest.MonkeyPatch) -> None:
    public_home.files[ADDRESS] = PUBLIC_FILE.encode()
    monkeypatch.setattr(loading, "LARGEST_FILE", 10)
    with pytest.raises(DatasetNotFoundError, match="more than 10 bytes"):
        fetch_dataset("made")


def test_broken_write_keeps_the_old_file(public_home: PublicHome, monkeypatch: pytest.MonkeyPatch) -> None:
    public_home.files[ADDRESS] = PUBLIC_FILE.encode()
    before = fetch_dataset("made").read_bytes()

    def disk_full(source: object, target: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", disk_full)
    with pytest.raises(OSError, match="no space left"):
        fetch_dataset("made", force=True)
    assert in_cache() == ["made.csv.gz"]
    assert (cache_folder() / "made.csv.gz").read_bytes() == before


def test_cache_folder_follows_the_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache" / "datasets"
    monkeypatch.delenv("COTERIE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "coterie" / "datasets"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().parts[-2:] == ("coterie", "datasets")


def test_all_columns_of_a_table(data_folder: Path) -> None:
    (data_folder / "made.csv").write_bytes(sources.write_csv(TABLE))
    assert load_table("made") == {"label": ("1", "2", "1", "2"), "text": tuple(text for _, text in ROWS)}
