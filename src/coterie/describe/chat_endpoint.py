"""Ask a language model at an OpenAI-compatible endpoint one question, with the standard library only."""

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

# Environment variables that may hold the key, in this order.
KEY_VARIABLES = ("COTERIE_API_KEY", "OPENAI_API_KEY")
CHAT_PATH = "/chat/completions"
# Seconds to wait before the next attempt at most, whatever the server asks for.
MAX_WAIT = 60.0
# Bytes of an answer that are read; a name takes less than a thousand.
MAX_ANSWER_BYTES = 1_000_000
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class NoAnswerError(CoterieError):
    """A question got no answer.

    Attributes
    ----------
    for_all:
        Whether the next question would fail too: the key is refused, or no server listens there.
    """

    def __init__(self, reason: str, *, for_all: bool = False) -> None:
        super().__init__(reason)
        self.for_all = for_all


@dataclass(frozen=True)
class Endpoint:
    """The address of a language model, and how to ask it.

    Parameters
    ----------
    url:
        The base address, to which ``/chat/completions`` is added. For most servers it ends in ``/v1``
        (``https://api.openai.com/v1``, ``http://localhost:11434/v1``). It may end in a slash or in
        ``/chat/completions``.
    model:
        The model's name on the server.
    key:
        Sent as a bearer token; never shown and never written to a file.
    timeout:
        Seconds per attempt.
    waits:
        Seconds to wait before each further attempt after status 429 or a server error (5xx), unless the server names
        a time.
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
            raise SettingError(f"--name-with must not contain a user or password: put the key into {KEY_VARIABLES[0]}")
        if not self.model.strip():
            raise SettingError("--model must name the model to ask")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            # The message must not contain the key.
            raise SettingError("the key in the environment contains characters that no key has, such as spaces")

    @property
    def host(self) -> str:
        """The server's name and port, for messages."""
        return urlsplit(self.url).netloc

    @property
    def is_unencrypted(self) -> bool:
        """Whether requests travel to another machine unencrypted."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and parts.hostname not in LOCAL_HOSTS

    @property
    def address(self) -> str:
        """The full address that questions are sent to."""
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/").removesuffix(CHAT_PATH) + CHAT_PATH
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    def ask(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the model's answer; raise :class:`NoAnswerError` where there is none."""
        for wait in (*self.waits, None):
            try:
                return _answer(self._post(messages))
            except _BusyError as busy:
                if wait is None:
                    raise NoAnswerError(self._safe(str(busy))) from None
                time.sleep(wait if busy.wait is None else min(busy.wait, MAX_WAIT))
        raise AssertionError("the last attempt returns or raises")

    def _post(self, messages: Sequence[Mapping[str, str]]) -> bytes:
        # Only what every server accepts: some refuse a temperature, some the older name of the length limit.
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
        """Return the error that a failed status stands for."""
        if error.code in {401, 403}:
            way_out = "the key is refused" if self.key else f"set a key in {KEY_VARIABLES[0]}"
            return NoAnswerError(f"{self.host} answered {error.code}: {way_out}", for_all=True)
        details = _error_message(error)
        message = f"{self.host} answered {error.code}{f': {details}' if details else ''}"
        if error.code == 429 or error.code >= 500:
            return _BusyError(message, _parse_seconds(error.headers.get("Retry-After")))
        return NoAnswerError(self._safe(message), for_all=error.code in {404, 405} or error.code < 400)

    def _safe(self, message: str) -> str:
        """Return a message in one line and without the key, which a server might repeat."""
        line = " ".join(message.split())
        return line if self.key is None else line.replace(self.key, "…")


def key_from_environment() -> tuple[str | None, str | None]:
    """Return the key and the name of its environment variable; (None, None) where there is none, as for own servers."""
    for name in KEY_VARIABLES:
        if key := os.environ.get(name, "").strip():
            return key, name
    return None, None


class _BusyError(Exception):
    """The server is busy; another attempt may succeed."""

    def __init__(self, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirections, which would send the key to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _read(response: IO[bytes], end: float) -> bytes:
    """Return the body; raise where it takes too long or is too large."""
    parts, length = [], 0
    while part := response.read(1 << 14):
        parts.append(part)
        length += len(part)
        if time.monotonic() > end:
            raise TimeoutError
        if length > MAX_ANSWER_BYTES:
            raise NoAnswerError("the answer is too long to be a name")
    return b"".join(parts)


def _answer(body: bytes) -> str:
    """Return the text of a chat completion."""
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise NoAnswerError("the answer does not have the format of a chat completion") from None
    if not isinstance(content, str):
        raise NoAnswerError("the answer contains no text")
    return content


def _error_message(error: urllib.error.HTTPError) -> str:
    """Return the server's own message, cut to length; empty where there is none."""
    try:
        content = json.loads(error.read(20_000))["error"]
        message = content if isinstance(content, str) else content["message"]
        return str(message)[:200]
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException, RecursionError):
        return ""


def _parse_seconds(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header."""
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:  # a date is allowed too; then the default wait applies
        return None
