"""A real browser for the tests, driven over a pipe: no driver program, no port, no network."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# Keys that do something by themselves are known by numbers.
KEY_CODES = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
# Seconds that a page may take for anything.
PATIENCE = 60.0


def chromium() -> str | None:
    """Where the browser is, if there is one."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


class Page:
    """One page of a headless browser.

    Commands and answers are JSON, a null character after each, on the pipes that ``--remote-debugging-pipe`` reads and
    writes as its file descriptors 3 and 4.
    """

    def __init__(self, profile: Path) -> None:
        program = chromium()
        assert program is not None
        (to_read, self._write), (self._read, to_write) = os.pipe(), os.pipe()

        def hand_over() -> None:
            # First out of the way of 3 and 4, whatever numbers they have.
            reading, writing = os.dup(to_read), os.dup(to_write)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=hand_over,
        )
        os.close(to_read)
        os.close(to_write)
        self._number = 0
        self._rest = b""
        self.errors: list[str] = []
        self._session: str | None = None
        targets = self._ask("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self._ask("Page.enable")
        self._ask("Runtime.enable")
        self._ask("Log.enable")
        self.start_over()

    def start_over(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> Self:
        """Leave the page that was open, forget its errors, and set the size and the colours of the next one."""
        self._ask("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.resize(width, height)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", features=features)
        self.errors.clear()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)  # it ends when nobody speaks to it any more
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def resize(self, width: int, height: int) -> None:
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def open(self, address: str) -> None:
        """Go there and wait until the page says that it is ready."""
        self._ask("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression (or of its promise) in the page."""
        answer = self._ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"still not so: {condition}; errors: {self.errors}"
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def place(self, selector: str) -> tuple[float, float]:
        """The middle of an element, scrolled into sight."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect(); "
            "return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        return float(box[0]), float(box[1])

    def click(self, selector: str) -> None:
        self.click_at(*self.place(selector))

    def click_at(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def move_to(self, x: float, y: float) -> None:
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def type(self, text: str) -> None:
        """Into what has the focus."""
        self._ask("Input.insertText", text=text)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = key if len(key) == 1 and kind == "keyDown" else ""
            self._ask(
                "Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=KEY_CODES.get(key, 0)
            )

    def keep_downloads(self, folder: Path) -> None:
        """What the page hands out is saved there, under the name that it is given."""
        folder.mkdir()
        self._ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        answer = self._ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        """What went wrong in the page is kept for whoever asks."""
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(event["params"]["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.errors.append(event["params"]["entry"]["text"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._read, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        first, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(first))
