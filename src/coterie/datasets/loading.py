"""Find a data set, check that its content is the one its card declares, and load it.

Order: the package; ``$COTERIE_DATA``; the user's cache; its public repository, unless offline.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import logging
import os
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from coterie.datasets.cards import DatasetCard, dataset_card, list_datasets
from coterie.datasets.sources import CONVERTERS, Table, read_csv, write_csv
from coterie.encoders.weights import is_offline
from coterie.errors import DatasetNotFoundError, InputError, SettingError
from coterie.files import user_cache
from coterie.text.corpus import Corpus, as_corpus
from coterie.text.reading import read_corpus

logger = logging.getLogger(__name__)

# Where the files of public repositories are downloaded.
PUBLIC_HOME = "https://raw.githubusercontent.com"
# Seconds without an answer after which a download fails.
TIMEOUT_SECONDS = 60
# Bytes; the largest file has about 4 MB, so a larger one than this is not a file of a data set.
LARGEST_FILE = 64 * 1024 * 1024
# The folder of the data sets that are part of the package.
BUNDLED_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Dataset:
    """Texts with their labels (``None`` for a text without one) and any other columns, in file order."""

    card: DatasetCard
    texts: tuple[str, ...]
    labels: tuple[str | None, ...]
    extra: Mapping[str, tuple[str, ...]]


def load_dataset(name: str, *, split: str | None = None, offline: bool = False) -> Dataset:
    """Load a clustering data set by name, all of it or one ``split``.

    Nothing is downloaded with ``offline=True``, or where ``$COTERIE_OFFLINE`` or ``$HF_HUB_OFFLINE`` is 1.
    """
    card = dataset_card(name)
    if card.kind != "clustering":
        raise SettingError(
            f"name={name!r} is a {card.kind} set, not a clustering set; load_table({name!r}) gives its columns"
        )
    if split is not None and split not in card.splits:
        known = f"it has {', '.join(card.splits)}" if card.splits else "it has no splits, leave split=None"
        raise SettingError(f"split={split!r} is not in {name!r}: {known}")
    columns = load_table(name, offline=offline)
    keep = [i for i, part in enumerate(columns["split"]) if part == split] if split else None

    def values(column: str) -> tuple[str, ...]:
        every = columns[column]
        return every if keep is None else tuple(every[i] for i in keep)

    return Dataset(
        card=card,
        texts=values("text"),
        labels=tuple(label or None for label in values("label")),
        extra=MappingProxyType({column: values(column) for column in card.extra_columns}),
    )


def load_table(name: str, *, offline: bool = False) -> Mapping[str, tuple[str, ...]]:
    """Return all columns of a data set of any kind, checked against its card."""
    card = dataset_card(name)
    if card.bundled:
        table = _bundled_table(card)
    else:
        path = find_dataset(name) or _fetch_or_explain(card, offline=offline)
        table = _read_checked(card, path)
    return MappingProxyType({column: table.column(column) for column in card.columns})


def read_file_or_dataset(path_or_name: str, *, text_column: str | None = None) -> Corpus:
    """Read the texts of a file, or of a data set by its name where no such file exists."""
    if Path(path_or_name).exists() or path_or_name not in {card.name for card in list_datasets()}:
        return read_corpus(path_or_name, text_column=text_column)
    table, column = load_table(path_or_name), text_column or "text"
    if column not in table:
        raise InputError(f"data set {path_or_name!r} has no column {column!r}; it has: {', '.join(table)}")
    return as_corpus(table[column])


def find_dataset(name: str) -> Path | None:
    """Return where the data set is on this machine, or ``None``; nothing is read or downloaded."""
    card = dataset_card(name)
    if card.bundled:
        return BUNDLED_FOLDER / name / "messages.csv"
    folders = [cache_folder()]
    if os.environ.get("COTERIE_DATA"):
        folders.insert(0, Path(os.environ["COTERIE_DATA"]).expanduser())
    for folder in folders:
        for ending in (".csv.gz", ".csv"):
            path = folder / f"{name}{ending}"
            if path.is_file():
                return path
    return None


def cache_folder() -> Path:
    """Return the folder of downloaded data sets; ``$COTERIE_CACHE`` overrides it."""
    return user_cache() / "datasets"


def fetch_dataset(name: str, *, force: bool = False) -> Path:
    """Download a data set into the cache, unless it is there already; ``force`` downloads it again."""
    card = dataset_card(name)
    if not card.fetchable:
        way_out = "load it by name" if card.bundled else f"put {name}.csv.gz in a folder and set COTERIE_DATA to it"
        raise DatasetNotFoundError(f"{name!r} cannot be fetched: {card.why_not_fetchable}; {way_out}")
    target = cache_folder() / f"{name}.csv.gz"
    if target.is_file() and not force:
        try:
            _read_checked(card, target)
        except DatasetNotFoundError:
            logger.warning("%s is damaged and is fetched again", target)
        else:
            return target
    if _offline():
        raise DatasetNotFoundError(
            f"{name!r} cannot be fetched while COTERIE_OFFLINE or HF_HUB_OFFLINE is set; unset it"
        )
    files = [_download(public_address(card, path)) for path in card.paths]
    try:
        table = CONVERTERS[card.source_format](files)
    # IndexError, KeyError and StopIteration: a column, class or archive member is not where it should be.
    except (ValueError, LookupError, StopIteration, zipfile.BadZipFile) as error:
        raise DatasetNotFoundError(
            f"{card.repository} sent a file for {name!r} that cannot be read as {card.source_format}: {error}"
        ) from error
    found = content_digest(card, table)
    if found != card.content_digest:
        raise DatasetNotFoundError(
            f"{card.repository} sent a file for {name!r} with other content: expected digest "
            f"{card.content_digest}, found {found}; it was not saved"
        )
    # mtime=0: the same content gives the same file.
    _write_atomically(target, gzip.compress(write_csv(table), mtime=0))
    return target


def public_address(card: DatasetCard, path: str) -> str:
    """Return the address of one public file, at the pinned commit."""
    return f"{PUBLIC_HOME}/{card.repository}/{card.commit}/{urllib.parse.quote(path)}"


def content_digest(card: DatasetCard, table: Table) -> str:
    """Return the SHA-256 over ``label<TAB>text<LF>`` of every row (see :class:`DatasetCard`)."""
    names = ("label", "question", "candidate") if card.kind == "ranking" else ("label", "text")
    digest = hashlib.sha256()
    for row in zip(*(table.column(name) for name in names), strict=True):
        digest.update(("\t".join(row) + "\n").encode("utf-8"))
    return digest.hexdigest()


def _read_checked(card: DatasetCard, path: Path) -> Table:
    try:
        data = path.read_bytes()
        table = read_csv(gzip.decompress(data) if path.suffix == ".gz" else data)
    # gzip raises EOFError for a cut file and zlib.error for a damaged one.
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DatasetNotFoundError(f"{path} cannot be read: {error}; replace or delete it") from error
    missing = [column for column in card.columns if column not in table.columns]
    if missing:
        raise DatasetNotFoundError(
            f"{path} lacks the column {missing[0]!r}: it has {', '.join(table.columns)}; replace or delete it"
        )
    file_sum = hashlib.sha256(data).hexdigest()
    if file_sum != card.sha256:
        found = content_digest(card, table)
        if found != card.content_digest:
            raise DatasetNotFoundError(
                f"{path} is not the {card.name!r} of the card: expected sha256 {card.sha256} or content "
                f"digest {card.content_digest}, found {file_sum} and {found}; replace or delete it"
            )
    return table


def _bundled_table(card: DatasetCard) -> Table:
    folder = BUNDLED_FOLDER / card.name
    messages = read_csv((folder / "messages.csv").read_bytes())
    topics = read_csv((folder / "topics.csv").read_bytes())
    topic = dict(zip(topics.column("id"), topics.column("topic"), strict=True))
    duplicate_of = dict(zip(topics.column("id"), topics.column("duplicate_of"), strict=True))
    rows = [
        (topic.get(number, "").strip(), text, number, duplicate_of.get(number, "").strip())
        for number, text in zip(messages.column("id"), messages.column("text"), strict=True)
    ]
    return Table(("label", "text", "id", "duplicate_of"), tuple(rows))


def _fetch_or_explain(card: DatasetCard, *, offline: bool) -> Path:
    folder = os.environ.get("COTERIE_DATA")
    tried = [
        f"COTERIE_DATA ({folder})" if folder else "COTERIE_DATA (not set)",
        f"the cache ({cache_folder()})",
    ]
    way_out = f"set COTERIE_DATA to a folder with {card.name}.csv.gz"
    if not card.fetchable:
        tried.append(f"its public repository (cannot be downloaded: {card.why_not_fetchable})")
    else:
        way_out += f", or run: coterie datasets fetch {card.name}"
        if offline or _offline():
            tried.append("its public repository (not tried: offline)")
        else:
            try:
                return fetch_dataset(card.name)
            except DatasetNotFoundError as error:
                tried.append(f"its public repository ({error})")
                raise DatasetNotFoundError(_not_found(card, tried, way_out)) from error
    raise DatasetNotFoundError(_not_found(card, tried, way_out))


def _not_found(card: DatasetCard, tried: list[str], way_out: str) -> str:
    return f"the data set {card.name!r} was not found; tried {'; '.join(tried)}; {way_out}"


def _offline() -> bool:
    return is_offline(("COTERIE_OFFLINE", "HF_HUB_OFFLINE"))


def _download(address: str) -> bytes:
    logger.info("fetching %s", address)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
            data: bytes = answer.read(LARGEST_FILE + 1)
    except urllib.error.HTTPError as error:
        raise DatasetNotFoundError(f"{address} answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:  # URLError and time-outs are kinds of OSError
        raise DatasetNotFoundError(f"{address} could not be reached: {error}") from error
    if len(data) > LARGEST_FILE:
        raise DatasetNotFoundError(f"{address} sent more than {LARGEST_FILE} bytes: not a file of a data set")
    return data


def _write_atomically(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside it and renamed, so that no reader ever opens half a file.
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        aside.write_bytes(data)
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)
