"""One question to a language model behind an OpenAI-compatible endpoint, by the standard library alone."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

from coterie.errors import CoterieError, SettingError

# Where a key is looked for, in this order.
KEY_VARIABLES = ("COTERIE_API_KEY", "OPENAI_API_KEY")
CHAT = "/chat/completions"
# Seconds a server may ask us to wait before the next try, and the largest answer that is read.
LONGEST_WAIT, LARGEST_ANSWER = 60.0, 1_000_000
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class NoAnswerError(CoterieError):
    """A question stayed without an answer.

    Attributes
    ----------
    for_all:
        The next question would fare no better: the key is refused, nobody listens there.
    """

    def __init__(self, reason: str, *, for_all: bool = False) -> None:
        super().__init__(reason)
        self.for_all = for_all


@dataclass(frozen=True)
class Endpoint:
    """Where a language model answers.

    Parameters
    ----------
    url:
        The base address, taken as it is: ``/chat/completions`` is put behind it. For most servers it ends in ``/v1``
        (``https://api.openai.com/v1``, ``http://localhost:11434/v1``). A slash at the end, or the
        ``/chat/completions`` itself, does no harm.
    model:
        The model's name there.
    key:
        Sent as a bearer token; shown and written nowhere.
    timeout:
        Seconds for one try.
    waits:
        Seconds to wait before each further try after 429 or a server's error (5xx), unless the server says how long.
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    waits: Sequence[float] = (1.0, 3.0, 9.0)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            known = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        except ValueError:
            known = False
        if not known or not self.url.isprintable() or " " in self.url:
            raise SettingError("--name-with must be an address such as http://localhost:11434/v1")
        if parts.username is not None or parts.password is not None:
            raise SettingError(f"--name-with must hold no user and password: put the key into {KEY_VARIABLES[0]}")
        if not self.model.strip():
            raise SettingError("--model must name the model to ask")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            # Said without the key itself.
            raise SettingError("the key in the environment holds characters that no key has, such as spaces")

    @property
    def host(self) -> str:
        """Who is asked, as people say it."""
        return urlsplit(self.url).netloc

    @property
    def in_the_open(self) -> bool:
        """Whether what is sent travels to another machine unencrypted."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in LOCAL_HOSTS

    @property
    def address(self) -> str:
        """Where questions are posted."""
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/").removesuffix(CHAT) + CHAT
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    def ask(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The model's answer; :class:`NoAnswerError` where none can be had."""
        for wait in (*self.waits, None):
            try:
                return _answer(self._post(messages))
            except _BusyError as busy:
                if wait is None:
                    raise NoAnswerError(self._safe(str(busy))) from None
                time.sleep(wait if busy.wait is None else min(busy.wait, LONGEST_WAIT))
        raise AssertionError("the last try returns or raises")

    def _post(self, messages: Sequence[Mapping[str, str]]) -> bytes:
        # Nothing beside what every server takes: some refuse a temperature, some the older name of a length limit.
        body = json.dumps({"model": self.model, "messages": list(messages), "stream": False}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "coterie"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(self.address, body, headers, method="POST")
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=self.timeout) as response:
                return _read(response, time.monotonic() + self.timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except TimeoutError:
            raise NoAnswerError(f"no answer within {self.timeout:g} s") from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise NoAnswerError(f"no answer within {self.timeout:g} s") from None
            raise NoAnswerError(self._safe(f"{self.host} cannot be reached: {error.reason}"), for_all=True) from None
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswerError(self._safe(f"the connection broke: {error or type(error).__name__}")) from None

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        """What a status other than success means."""
        if error.code in {401, 403}:
            way_out = "the key is refused" if self.key else f"it wants a key in {KEY_VARIABLES[0]}"
            return NoAnswerError(f"{self.host} answered {error.code}: {way_out}", for_all=True)
        said = _error_message(error)
        told = f"{self.host} answered {error.code}{f': {said}' if said else ''}"
        if error.code == 429 or error.code >= 500:
            return _BusyError(told, _seconds(error.headers.get("Retry-After")))
        return NoAnswerError(self._safe(told), for_all=error.code in {404, 405} or error.code < 400)

    def _safe(self, told: str) -> str:
        """One line without the key, whoever put it there."""
        line = " ".join(told.split())
        return line if self.key is None else line.replace(self.key, "…")


def key_from_environment() -> tuple[str | None, str | None]:
    """The key and the variable it stands in; servers of one's own want none."""
    for name in KEY_VARIABLES:
        if key := os.environ.get(name, "").strip():
            return key, name
    return None, None


class _BusyError(Exception):
    """Worth another try."""

    def __init__(self, told: str, wait: float | None) -> None:
        super().__init__(told)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection is refused: the key would travel to whoever it names."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _read(response: IO[bytes], end: float) -> bytes:
    """The body; one that drips in for ever is left."""
    parts, length = [], 0
    while part := response.read(1 << 14):
        parts.append(part)
        length += len(part)
        if time.monotonic() > end:
            raise TimeoutError
        if length > LARGEST_ANSWER:
            raise NoAnswerError("the answer is too long to be a name")
    return b"".join(parts)


def _answer(body: bytes) -> str:
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise NoAnswerError("the answer is not of the form that chat completions have") from None
    if not isinstance(content, str):
        raise NoAnswerError("the answer holds no text")
    return content


def _error_message(error: urllib.error.HTTPError) -> str:
    """What the server says of it, cut; nothing where it says nothing that can be read."""
    try:
        told = json.loads(error.read(20_000))["error"]
        message = told if isinstance(told, str) else told["message"]
        return str(message)[:200]
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException, RecursionError):
        return ""


def _seconds(told: str | None) -> float | None:
    try:
        return max(0.0, float(told)) if told else None
    except ValueError:  # a date is allowed too; our own wait will do
        return None
