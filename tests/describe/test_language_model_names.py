"""Names of clusters from a language model, by a real server on this machine."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from chat_server import ChatServer, Reply, Request, fails, says

from coterie import describe_clusters
from coterie.describe.cards import ClusterCard, build_cards
from coterie.describe.chat_endpoint import Endpoint, NoAnswerError, key_from_environment
from coterie.describe.language_model_names import (
    MAX_NAME_LENGTH,
    Answer,
    Question,
    ask_all,
    build_questions,
    clean_name,
    drop_duplicate_names,
    estimate_cost,
    parse_clusters,
    with_names,
)
from coterie.errors import SettingError
from coterie.runs.names_file import KnownNames

KEY = "sk-very-secret-0123456789"
HELLO = [{"role": "user", "content": "hello"}]
TEXTS = ["late parcel", "parcel lost", "login trouble", "password login", "refund please", "refund money", "odd"]
LABELS = np.array([0, 0, 1, 1, 2, 2, -1])


@pytest.fixture
def cards() -> list[ClusterCard]:
    return build_cards(describe_clusters(TEXTS, LABELS), TEXTS, LABELS, vectors=None)


def _ask(asked: list[Question], endpoint: Endpoint, folder: Path) -> Iterator[Answer]:
    """As ``coterie report --name-with`` asks: answers are kept in the run folder."""
    known = KnownNames.read(folder)
    return ask_all(asked, endpoint, known.answers, lambda: known.write(folder))


def _asked(cards: list[ClusterCard], server: ChatServer, folder: Path, **given: object) -> list[Answer]:
    endpoint = Endpoint(server.url, "tiny", **{"waits": (0.0,), **given})  # type: ignore[arg-type]
    return list(_ask(build_questions(cards, {0, 1, 2}), endpoint, folder))


# --- the endpoint ---


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("", "/chat/completions"),
        ("/", "/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/deep/v4?api-version=2", "/deep/v4/chat/completions?api-version=2"),
    ],
)
def test_the_address_is_the_base(given: str, path: str) -> None:
    with ChatServer([says("Late parcels")]) as server:
        assert Endpoint(f"http://{server.host}{given}", "tiny").ask(HELLO) == "Late parcels"
    assert [request.path for request in server.requests] == [path]
    assert server.requests[0].body == {"model": "tiny", "messages": HELLO, "stream": False}


def test_the_key_is_a_bearer_token_and_none_is_fine() -> None:
    with ChatServer([says("x")]) as server:
        Endpoint(server.url, "tiny", KEY).ask(HELLO)
        Endpoint(server.url, "tiny").ask(HELLO)
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert "Authorization" not in server.requests[1].headers


def test_where_the_key_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COTERIE_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert key_from_environment() == (None, None)
    monkeypatch.setenv("OPENAI_API_KEY", "second")
    monkeypatch.setenv("COTERIE_API_KEY", " ")
    assert key_from_environment() == ("second", "OPENAI_API_KEY")
    monkeypatch.setenv("COTERIE_API_KEY", "first\n")
    assert key_from_environment() == ("first", "COTERIE_API_KEY")


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x/v1", "http://", "file:///etc/passwd", "http://x:y/v1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="--name-with must be an address"):
        Endpoint(url, "tiny")


def test_secrets_are_in_no_message() -> None:
    with pytest.raises(SettingError, match="COTERIE_API_KEY") as output:
        Endpoint(f"http://me:{KEY}@host/v1", "tiny")
    assert KEY not in str(output.value)
    with pytest.raises(SettingError, match="characters that no key has") as output:
        Endpoint("http://host/v1", "tiny", f"{KEY}\nX-Other: 1")
    assert KEY not in str(output.value)
    assert KEY not in repr(Endpoint("http://host/v1", "tiny", KEY))
    with ChatServer([fails(400, f"key {KEY} is strange")]) as server:
        with pytest.raises(NoAnswerError, match="answered 400: key … is strange") as answer:
            Endpoint(server.url, "tiny", KEY).ask(HELLO)
        assert not answer.value.for_all


@pytest.mark.parametrize("busy", [fails(500), fails(503), fails(429), fails(429, Retry_After="0")])
def test_a_busy_server_is_asked_again(busy: Reply) -> None:
    with ChatServer([busy, busy, says("Late parcels")]) as server:
        assert Endpoint(server.url, "tiny", waits=(0.0, 0.0)).ask(HELLO) == "Late parcels"
        assert len(server.requests) == 3
        server.requests.clear()
    with ChatServer([busy]) as server:
        with pytest.raises(NoAnswerError, match=f"answered {busy.status}: no") as output:
            Endpoint(server.url, "tiny", waits=(0.0, 0.0)).ask(HELLO)
        assert len(server.requests) == 3
        assert not output.value.for_all


def test_the_wait_is_ours_or_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    clock = SimpleNamespace(sleep=waits.append, monotonic=time.monotonic)
    monkeypatch.setattr("coterie.describe.chat_endpoint.time", clock)
    with ChatServer([fails(500), fails(429, Retry_After="7"), fails(429), says("x")]) as server:
        Endpoint(server.url, "tiny", waits=(0.3, 60.0, 2.0)).ask(HELLO)
    assert waits == [0.3, 7.0, 2.0]


@pytest.mark.parametrize("reply", [fails(401, KEY), fails(403), fails(404, "no such model"), fails(405)])
def test_what_no_further_question_would_mend(reply: Reply) -> None:
    with ChatServer([reply]) as server:
        with pytest.raises(NoAnswerError, match=f"answered {reply.status}") as output:
            Endpoint(server.url, "tiny", KEY).ask(HELLO)
        assert len(server.requests) == 1
    assert output.value.for_all
    assert KEY not in str(output.value)


def test_a_redirection_takes_the_key_nowhere() -> None:
    with ChatServer([says("stolen")]) as thief:
        moved = Reply(b"", 307, {"Location": f"{thief.url}/chat/completions"})
        with ChatServer([moved]) as server, pytest.raises(NoAnswerError, match="answered 307"):
            Endpoint(server.url, "tiny", KEY).ask(HELLO)
        assert thief.requests == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_an_answer_of_another_form(body: bytes) -> None:
    with ChatServer([Reply(body)]) as server, pytest.raises(NoAnswerError, match="format of a chat completion"):
        Endpoint(server.url, "tiny").ask(HELLO)


def test_an_answer_without_text_or_without_end() -> None:
    with ChatServer([says(None)]) as server, pytest.raises(NoAnswerError, match="no text"):
        Endpoint(server.url, "tiny").ask(HELLO)
    with ChatServer([says("x" * 2_000_000)]) as server, pytest.raises(NoAnswerError, match="too long"):
        Endpoint(server.url, "tiny").ask(HELLO)
    with ChatServer([Reply(b"short", headers={"Content-Length": "99"})]) as server, pytest.raises(NoAnswerError):
        Endpoint(server.url, "tiny", timeout=5).ask(HELLO)


def test_a_server_that_does_not_answer_in_time() -> None:
    with ChatServer([Reply(after=60.0)]) as server:
        with pytest.raises(NoAnswerError, match="no answer within 0.2 s") as output:
            Endpoint(server.url, "tiny", timeout=0.2).ask(HELLO)
        assert len(server.requests) == 1
    assert not output.value.for_all


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(NoAnswerError, match=f"127.0.0.1:{port} cannot be reached: .*refused") as output:
        Endpoint(f"http://127.0.0.1:{port}/v1", "tiny").ask(HELLO)
    assert output.value.for_all


# --- questions ---


def test_a_question_contains_keywords_texts_and_other_clusters(cards: list[ClusterCard]) -> None:
    first, second = build_questions(cards, {0, 1})
    output = first.messages[-1]["content"]
    assert (first.cluster, first.n_texts, second.cluster) == (0, 2, 1)
    for part in ("Keywords of the group: parcel", "- late parcel", "- Login", "- Refund"):
        assert part in output
    assert "login trouble" not in output
    assert "odd" not in output
    without = build_questions(cards, {0}, with_texts=False)[0]
    assert without.n_texts == 0
    assert "late parcel" not in json.dumps(without.messages)
    assert "parcel" in without.messages[-1]["content"]


def test_long_texts_are_cut_and_lines_joined() -> None:
    texts, labels = ["a\nb " + "very " * 100, "other"], np.array([0, 1])
    cards = build_cards(describe_clusters(texts, labels), texts, labels, vectors=None)
    line = next(
        line for line in build_questions(cards, {0})[0].messages[-1]["content"].splitlines() if "very" in line[:20]
    )
    assert line.startswith("- a b very")
    assert len(line) <= 202


def test_the_digest_is_of_model_and_question(cards: list[ClusterCard]) -> None:
    first, second = build_questions(cards, {0, 1})
    assert first.digest("a") == build_questions(cards, {0})[0].digest("a")
    assert len({first.digest("a"), first.digest("b"), second.digest("a")}) == 3
    # A name that was given changes no question.
    assert build_questions(with_names(cards, {0: "New", 1: "Other"}), {0})[0].digest("a") == first.digest("a")


def test_the_cost(cards: list[ClusterCard]) -> None:
    asked = build_questions(cards, {0, 2})
    output = estimate_cost(asked)
    letters = sum(len(message["content"]) for question in asked for message in question.messages)
    assert (output.requests, output.texts) == (2, 4)
    assert output.tokens_in == pytest.approx(letters / 4, abs=1)
    assert estimate_cost([]).tokens_out == 0


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(None, {0, 1, 2}), ("all", {0, 1, 2}), ("0,2", {0, 2}), ("1-2", {1, 2}), (" 0 , 1 - 2,", {0, 1, 2})],
)
def test_which_clusters(given: str | None, wanted: set[int], cards: list[ClusterCard]) -> None:
    assert parse_clusters(given, cards) == wanted


@pytest.mark.parametrize("given", ["", ",", "x", "-1", "2-1", "3", "0-3", "1.5", "0-999999999", "٣"])
def test_which_clusters_refused(given: str, cards: list[ClusterCard]) -> None:
    with pytest.raises(SettingError, match="--name-clusters"):
        parse_clusters(given, cards)


# --- names ---


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("Late parcels", "Late parcels"),
        ('  "Late parcels."\n\nbecause', "Late parcels"),
        ("“Late parcels”", "Late parcels"),
        ("**Late parcels**", "Late parcels"),
        ("Name: Late parcels", "Late parcels"),
        ("1. Late parcels", "Late parcels"),
        ("Here is a name:\nLate parcels", "Late parcels"),
        ("<think>hm\nName: no</think>Late parcels", "Late parcels"),
        ("Late\u202e\x00 parcels\x1b[31m", "Late parcels [31m"),
        (".NET and C# questions", ".NET and C# questions"),
        ("snake_case in Python", "snake_case in Python"),
        ("می‌خواهم", "می‌خواهم"),
        ("遅れた荷物", "遅れた荷物"),
        ("<b>bold</b>", "<b>bold</b>"),
    ],
)
def test_an_answer_becomes_a_name(output: str, name: str) -> None:
    assert clean_name(output) == name
    assert clean_name(name) == name


@pytest.mark.parametrize("output", ["", " \n ", "...", '""', "<think>never ends", "word " * 100, None, 3, "Sure:"])
def test_an_answer_without_a_name(output: object) -> None:
    assert clean_name(output) is None


def test_a_long_name_is_cut_between_words() -> None:
    output = clean_name("Parcels that arrived much too late or did not arrive anywhere at all")
    assert output == "Parcels that arrived much too late or did not arrive…"
    whole = clean_name("x" * 100)
    assert whole == "x" * (MAX_NAME_LENGTH - 1) + "…"


def test_no_two_clusters_get_one_name() -> None:
    own = {0: "Parcel, late", 1: "Login", 2: "Refund"}
    assert drop_duplicate_names(own, {0: "Parcels", 1: "Accounts"}) == {0: "Parcels", 1: "Accounts"}
    assert drop_duplicate_names(own, {0: "Trouble", 2: "trouble!"}) == {0: "Trouble"}
    # The first that was named keeps it.
    assert drop_duplicate_names(own, {2: "Trouble", 0: "Trouble"}) == {2: "Trouble"}
    # The keyword name of one that keeps its own is taken.
    assert drop_duplicate_names(own, {0: "login"}) == {}
    assert drop_duplicate_names(own, {0: "Login", 1: "Accounts"}) == {0: "Login", 1: "Accounts"}
    # One falls back, and takes its keyword name from another.
    assert drop_duplicate_names(own, {0: "Trouble", 1: "Trouble", 2: "Login"}) == {0: "Trouble"}
    assert drop_duplicate_names(own, {1: "Login"}) == {1: "Login"}
    assert drop_duplicate_names(own, {9: "Unknown"}) == {}


def test_cards_keep_their_keyword_names(cards: list[ClusterCard]) -> None:
    named = with_names(cards, {0: "Missing parcels"})
    output = named[0].to_dict()
    assert (output["name"], output["keyword_name"]) == ("Missing parcels", cards[0].name)
    assert "keyword_name" not in named[1].to_dict()
    assert with_names(named, {}) == cards


def test_names_are_asked_for_once(cards: list[ClusterCard], tmp_path: Path) -> None:
    def reply(request: Request) -> Reply:
        return says("Late parcels" if "- late parcel" in request.question else request.question[:40])

    with ChatServer(reply) as server:
        first = _asked(cards, server, tmp_path)
        assert len(server.requests) == 3
        again = _asked(cards, server, tmp_path)
        assert len(server.requests) == 3
        assert first[0] == Answer(0, "Late parcels")
        assert [each.name for each in again] == [each.name for each in first]
        assert all(each.was_known for each in again)
        endpoint = Endpoint(server.url, "another")
        assert not next(iter(_ask(build_questions(cards, {0}), endpoint, tmp_path))).was_known
    stored = (tmp_path / "names.json").read_text(encoding="utf-8")
    assert "late parcel" not in stored
    assert len(json.loads(stored)["answers"]) == 4


def test_a_failure_takes_no_other_with_it(cards: list[ClusterCard], tmp_path: Path) -> None:
    with ChatServer([says("One"), Reply(b"no"), says("Three")]) as server:
        answers = _asked(cards, server, tmp_path)
        assert [each.name for each in answers] == ["One", None, "Three"]
        assert answers[1].problem is not None and "format of a chat completion" in answers[1].problem
        # What failed is asked for again, and only that.
        assert [each.name for each in _asked(cards, server, tmp_path)] == ["One", "Three", "Three"]
        assert len(server.requests) == 4


def test_nobody_is_asked_in_vain(cards: list[ClusterCard], tmp_path: Path) -> None:
    with ChatServer([fails(401)]) as server:
        answers = _asked(cards, server, tmp_path)
        assert len(server.requests) == 1
        assert len({each.problem for each in answers}) == 1
        assert [each.name for each in answers] == [None] * 3
    assert not (tmp_path / "names.json").exists()
    many = [*build_questions(cards, {0, 1, 2}), *build_questions(cards, {0, 1, 2}, with_texts=False)]
    with ChatServer([fails(500)]) as server:
        endpoint = Endpoint(server.url, "tiny", waits=())
        assert len(list(_ask(many, endpoint, tmp_path))) == 6
        assert len(server.requests) == 3


def test_an_answer_is_kept_however_it_ends(cards: list[ClusterCard], tmp_path: Path) -> None:
    with ChatServer([says("One")]) as server:
        asking = _ask(build_questions(cards, {0, 1, 2}), Endpoint(server.url, "tiny"), tmp_path)
        next(asking)
    assert list(KnownNames.read(tmp_path).answers.values()) == ["One"]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"clusters": {"x": "y"}, "answers": {}}', '{"clusters": {"0": 3}, "answers": {}}', "{}"]
)
def test_a_file_that_is_none_of_ours(content: str, tmp_path: Path) -> None:
    (tmp_path / "names.json").write_text(content, encoding="utf-8")
    found = KnownNames.read(tmp_path)
    assert found.unreadable
    assert found.clusters == found.answers == {}


def test_a_server_may_give_a_date_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    clock = SimpleNamespace(sleep=waits.append, monotonic=time.monotonic)
    monkeypatch.setattr("coterie.describe.chat_endpoint.time", clock)
    with ChatServer([fails(429, Retry_After="Wed, 18 Nov 2026 07:28:00 GMT"), says("x")]) as server:
        assert Endpoint(server.url, "tiny", waits=(0.3,)).ask(HELLO) == "x"
    assert waits == [0.3]


def test_a_model_must_be_named() -> None:
    with pytest.raises(SettingError, match="--model must name the model"):
        Endpoint("http://localhost:1/v1", " ")
