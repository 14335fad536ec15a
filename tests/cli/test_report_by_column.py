"""``--by`` of ``coterie fit`` and ``coterie report``: clusters counted by other columns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import column, done, read_json, refusal, tree, write_csv, write_parquet
from conftest import topic_texts

from coterie.report.html.rendering import read_content

TEXTS, TOPICS = topic_texts(36)
N = len(TEXTS)
COUNTRIES = [["DE", "FR", "", "<b>ES</b>"][i % 4] for i in range(N)]
DAYS = [f"{1 + i % 28:02d}.{1 + i % 3:02d}.2024" for i in range(N)]
MIXED = [day if i % 2 else "soon" for i, day in enumerate(DAYS)]
COLUMNS = {"text": TEXTS, "country": COUNTRIES, "day": DAYS, "mixed": MIXED, "cluster": TOPICS}
FAST = ("-k", 3, "-m", "tfidf", "--text-column", "text")


def by(run: Path) -> list[dict[str, Any]]:
    return [card.get("by", {}) for card in read_json(run / "clusters.json")["clusters"]]


def page(path: Path) -> dict[str, Any]:
    content = read_content(path.read_text(encoding="utf-8"))
    assert content is not None
    return content


def check_countries(run: Path) -> None:
    """The counts are those of assignments.csv."""
    rows = list(
        zip(column(run / "assignments.csv", "cluster"), column(run / "assignments.csv", "country"), strict=True)
    )
    for k, counts in enumerate(by(run)):
        here = Counter(country for cluster, country in rows if cluster == str(k))
        written = counts["country"]
        assert {each["value"]: each["count"] for each in written["values"]} | {"": written["empty"]} == {"": 0} | dict(
            here
        )


def test_a_fit_keeps_and_counts_the_columns(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", COLUMNS)
    outcome = done("fit", path, *FAST, "--by", "country,day", "--by", "mixed", "--report", "-o", tmp_path / "run")
    assert "Note: column 'mixed' is counted by value: it contains dates and other values such as 'soon'." in outcome.out
    run = tmp_path / "run"
    check_countries(run)
    assert read_json(run / "run.json")["by"] == ["country", "day", "mixed"]
    assert [list(counts) for counts in by(run)] == [["country", "day", "mixed"]] * 3
    assert by(run)[0]["day"]["unit"] == "week"
    content = page(run / "report.html")
    assert [card["by"] for card in content["clusters"]] == by(run)
    assert sum(content["by"]["day"]["dates"].values()) == N
    assert any("'mixed' is counted by value" in note for note in content["about"]["notes"])
    # The same report again without a word about columns.
    done("report", run, "-o", tmp_path / "again.html")
    assert page(tmp_path / "again.html")["by"] == content["by"]


def test_without_a_report_clusters_json_has_the_counts(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", COLUMNS)
    done("fit", path, *FAST, "-q", "--by", "country", "--keep", "all", "-o", tmp_path / "run")
    check_countries(tmp_path / "run")


@pytest.mark.parametrize("text_option", [(), ("--no-text",)])
def test_a_report_counts_columns_that_were_kept(text_option: tuple[str, ...], tmp_path: Path) -> None:
    path, run = write_csv(tmp_path / "in.csv", COLUMNS), tmp_path / "run"
    done("fit", path, *FAST, "-q", "--keep", "all", "--report", "-o", run, *text_option)
    before = read_json(run / "clusters.json")["clusters"]
    assert by(run) == [{}] * 3
    outcome = done("report", run, "--by", "country", "--by", "mixed")
    assert "Note: column 'mixed' is counted by value" in outcome.out
    check_countries(run)
    assert [card["by"] for card in page(run / "report.html")["clusters"]] == by(run)
    # All else is as it was, texts among it.
    written = read_json(run / "clusters.json")["clusters"]
    assert [{key: card[key] for key in card if key != "by"} for card in written] == before
    assert bool(before[0]["representatives"]) == (text_option == ())
    # A column that had to be renamed goes by the name it came with.
    done("report", run, "--by", "cluster")
    counts_by_cluster = Counter(column(run / "assignments.csv", "cluster_input"))
    found = Counter({each["value"]: 0 for each in by(run)[0]["cluster"]["values"]})
    for counts in by(run):
        found.update({each["value"]: each["count"] for each in counts["cluster"]["values"]})
    assert found == counts_by_cluster


def test_typed_columns_read_the_same_at_once_and_later(tmp_path: Path) -> None:
    from datetime import datetime

    when = [datetime(2024, 1, 1 + i % 20, 12, 30) if i % 5 else None for i in range(N)]
    score = [i % 4 / 2 if i % 3 else None for i in range(N)]
    path = write_parquet(tmp_path / "in.parquet", {"text": TEXTS, "when": when, "score": score})
    done("fit", path, *FAST, "-q", "--by", "when,score", "-o", tmp_path / "run")
    at_once = by(tmp_path / "run")
    done("report", tmp_path / "run", "--by", "when,score")
    assert by(tmp_path / "run") == at_once
    assert at_once[0]["when"]["kind"] == "dates"
    assert sum(counts["score"]["empty"] for counts in at_once) == 12


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path, run = write_csv(tmp_path / "in.csv", COLUMNS), tmp_path / "run"
    message = refusal("fit", path, *FAST, "-o", run, "--by", "contry")
    assert "'contry'" in message and "did you mean 'country'?" in message
    assert not run.exists()
    message = refusal("fit", path, *FAST, "-o", run, "--by", "text", "--keep", "all")
    assert "--by text" in message
    done("fit", path, *FAST, "-q", "--keep", "country,day", "-o", run)
    before = tree(run)
    message = refusal("report", run, "--by", "contry")
    assert "'contry'" in message and "it kept 'country', 'day'" in message and "--keep" in message
    assert tree(run) == before
    done("fit", path, *FAST, "-q", "-o", run, "--overwrite")
    assert "it kept none" in refusal("report", run, "--by", "country")
