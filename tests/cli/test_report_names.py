"""``coterie report --name-with``: names from a language model, by a real server on this machine."""

from __future__ import annotations

import re
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Reply, Request, fails, says
from command_line import coterie, done, read_json, refusal, tree, write_csv
from conftest import topic_texts

from coterie.report.html.rendering import read_content

TEXTS, _ = topic_texts(36)
KEY = "sk-very-secret-0123456789"
NAMED = ["Late parcels", "Locked accounts", "Money back"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    path = write_csv(folder / "in.csv", {"text": TEXTS})
    done("fit", path, "-k", 3, "-m", "tfidf", "-q", "--report", "-o", folder / "run")
    done("fit", path, "-k", 3, "-m", "tfidf", "-q", "--report", "--no-text", "-o", folder / "silent")
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("COTERIE_API_KEY", KEY)
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


@pytest.fixture
def silent(run: Path, made: Path) -> Path:
    return Path(shutil.copytree(made / "silent", run.with_name("silent")))


def clusters(run: Path) -> list[dict[str, Any]]:
    return list(read_json(run / "clusters.json")["clusters"])


def page_names(path: Path) -> list[str]:
    content = read_content(path.read_text(encoding="utf-8"))
    assert content is not None
    names = [card["name"] for card in content["clusters"]]
    assert any(f"“{name}”" in content["headline"][0] for name in names)
    return names


def named_by_keywords(request: Request) -> Reply:
    """A name made of what the question says, so that no two are alike."""
    keywords = re.search(r"Keywords of the group: (\w+)", request.question)
    assert keywords is not None
    return says(f'"About {keywords[1]}."')


def test_names_stand_in_the_report_in_the_clusters_and_in_later_reports(run: Path) -> None:
    before = clusters(run)
    with ChatServer([says(name) for name in NAMED]) as server:
        outcome = done("report", run, "--name-with", server.url, "--model", "tiny", "--yes")
        assert len(server.requests) == 3
        assert {request.headers["Authorization"] for request in server.requests} == {f"Bearer {KEY}"}
        assert "Named 3 of 3 clusters." in outcome.out
        estimate = r"3 requests to tiny, about [\d,]+ tokens in and 36 out .*; (\d+) texts of the run will be sent to "
        found = re.search(estimate + re.escape(server.host) + ", with the key in COTERIE_API_KEY", outcome.err)
        assert found is not None
        assert int(found[1]) == sum(request.question.count("\n- ") - 2 for request in server.requests)
        # The second time nothing is asked, and nothing needs consent.
        again = done("report", run, "--name-with", server.url, "--model", "tiny")
        assert "Named 3 of 3 clusters (3 from names.json)." in again.out
        assert again.err == ""
        assert len(server.requests) == 3
    after = clusters(run)
    assert [card["name"] for card in after] == NAMED
    assert [card["keyword_name"] for card in after] == [card["name"] for card in before]
    for old, new in zip(before, after, strict=True):
        assert {k: v for k, v in new.items() if k not in {"name", "keyword_name"}} == {
            k: v for k, v in old.items() if k != "name"
        }
    assert page_names(run / "report.html") == NAMED
    done("report", run, "--map", "pca", "-o", run / "later.html")
    assert page_names(run / "later.html") == NAMED
    done("plot", run, "sizes", "-o", run / "sizes.svg")
    assert "Late parcels" in (run / "sizes.svg").read_text(encoding="utf-8")
    # The key is nowhere.
    for content in tree(run).values():
        assert content is None or KEY.encode() not in content
    assert KEY not in outcome.out + outcome.err + again.out


def test_only_the_clusters_asked_for(run: Path) -> None:
    before = [card["name"] for card in clusters(run)]
    with ChatServer(named_by_keywords) as server:
        given = ("--name-with", server.url, "--model", "tiny", "-y", "--name-clusters")
        done("report", run, *given, "1")
        assert len(server.requests) == 1
        names = [card["name"] for card in clusters(run)]
        assert [name.startswith("About ") for name in names] == [False, True, False]
        assert (names[0], names[2]) == (before[0], before[2])
        outcome = done("report", run, *given, "0-1")
        assert len(server.requests) == 2
        assert "1 names are known already" in outcome.err
        assert [card["name"].startswith("About ") for card in clusters(run)] == [True, True, False]
        assert "the clusters are 0 to 2" in refusal("report", run, *given, "0,7")


def test_what_fails_keeps_its_keywords(run: Path) -> None:
    before = [card["name"] for card in clusters(run)]
    with ChatServer([says("Late parcels"), Reply(b"not json"), says("late parcels!")]) as server:
        outcome = done("report", run, "--name-with", server.url, "--model", "tiny", "--yes")
    assert "Named 1 of 3 clusters." in outcome.out
    assert f"Cluster 1 keeps “{before[1]}”: the answer does not have the format of a chat completion." in outcome.out
    assert f"Cluster 2 keeps “{before[2]}”: “late parcels!” is the name of another cluster." in outcome.out
    assert [card["name"] for card in clusters(run)] == ["Late parcels", before[1], before[2]]
    assert page_names(run / "report.html") == ["Late parcels", before[1], before[2]]


def test_a_server_that_is_not_there_or_refuses_makes_a_report_all_the_same(run: Path) -> None:
    before = [card["name"] for card in clusters(run)]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    outcome = done("report", run, "--name-with", nobody, "--model", "tiny", "--yes")
    assert "Named 0 of 3 clusters." in outcome.out
    assert "Clusters 0, 1, 2 keep their names: 127.0.0.1" in outcome.out
    with ChatServer([fails(401, f"wrong key {KEY}")]) as server:
        outcome = done("report", run, "--name-with", server.url, "--model", "tiny", "--yes")
        assert len(server.requests) == 1
    assert "the key is refused" in outcome.out
    assert KEY not in outcome.out + outcome.err
    assert page_names(run / "report.html") == [card["name"] for card in clusters(run)] == before


def test_nothing_is_sent_without_consent(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(run)
    with ChatServer([says("x")]) as server:
        message = refusal("report", run, "--name-with", server.url, "--model", "tiny")
        assert "3 requests to tiny" in message and "Nothing was sent: add --yes" in message and server.host in message
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("typer.confirm", _declined)
        assert coterie("report", run, "--name-with", server.url, "--model", "tiny").code == 1
        assert server.requests == []
    assert tree(run) == before


def _declined(question: str, *, abort: bool, **_: object) -> None:
    import typer

    assert abort and question == "Send it?"
    raise typer.Abort


def test_halves_of_the_option_are_refused_before_anything_is_done(run: Path, tmp_path: Path) -> None:
    before = tree(run)
    assert "--model" in refusal("report", run, "--name-with", "http://localhost:1/v1")
    for half in (("--model", "tiny"), ("--name-clusters", "0"), ("--yes",)):
        assert "needs --name-with" in refusal("report", run, *half)
    assert "must be an address" in refusal("report", run, "--name-with", "localhost", "--model", "tiny", "--yes")
    assert "not a run" in refusal("report", tmp_path, "--name-with", "http://localhost:1/v1", "--model", "m", "--yes")
    assert tree(run) == before


@pytest.mark.parametrize("kind", ["run", "silent"])
def test_without_texts_keywords_alone_are_sent(kind: str, run: Path, silent: Path) -> None:
    folder = {"run": run, "silent": silent}[kind]
    option = ("--no-text",) if kind == "run" else ()
    with ChatServer([says(name) for name in NAMED]) as server:
        outcome = done("report", folder, *option, "--name-with", server.url, "--model", "tiny", "--yes")
    assert "keywords and no text of the run will be sent" in outcome.err
    sent = " ".join(request.question for request in server.requests)
    assert "Keywords of the group:" in sent
    assert not [text for text in TEXTS if text in sent]
    assert page_names(folder / "report.html") == NAMED
    assert [card["name"] for card in clusters(folder)] == NAMED
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not [text for text in TEXTS if text in page]
    # The run keeps its own texts.
    assert bool(clusters(folder)[0]["representatives"]) == (kind == "run")
    assert not [text for text in TEXTS if text in (folder / "names.json").read_text(encoding="utf-8")]


def test_names_that_cannot_be_read_are_said_and_made_anew(run: Path) -> None:
    before = [card["name"] for card in clusters(run)]
    (run / "names.json").write_text("[", encoding="utf-8")
    done("report", run, "-o", run / "plain.html")
    assert page_names(run / "plain.html") == before
    with ChatServer(named_by_keywords) as server:
        outcome = done("report", run, "--name-with", server.url, "--model", "tiny", "--yes")
    assert "names.json cannot be read" in outcome.err
    assert len(read_json(run / "names.json")["clusters"]) == 3


def test_an_answer_that_is_markup_stays_text(run: Path) -> None:
    with ChatServer([says("</script><b>x</b>"), says("{{data}}"), says("a\u2028b")]) as server:
        done("report", run, "--name-with", server.url, "--model", "tiny", "--yes")
    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.count("</script>") == 2
    assert page_names(run / "report.html")[:2] == ["</script><b>x</b>", "{{data}}"]
