"""Pages as rendered by a browser, after their scripts have run."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

needs_chromium = pytest.mark.skipif(
    not shutil.which("chromium"), reason="Chromium is not on this machine"
)

_SCHEMES = {"dark": "0", "light": "1"}
_PATIENCE = 600  # seconds; a busy machine may need minutes for what takes one second elsewhere
_STARTS = 3
_QUIET = "--no-first-run --disable-background-networking --disable-component-update --disable-sync"


def rendered(url: str, folder: Path, scheme: str = "light", *, width: int | None = None) -> str:
    """Return the rendered document; the browser's console must stay empty.

    Parameters
    ----------
    url, folder
        The page, and a folder for the browser's profile.
    scheme
        ``light`` or ``dark``.
    width
        Of the window, in pixels; also lets the page's promises settle.
    """
    window = [f"--window-size={width},1000", "--virtual-time-budget=20000"] if width else []
    done = subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", *_QUIET.split()),
            f"--user-data-dir={folder / 'browser'}",
            f"--blink-settings=preferredColorScheme={_SCHEMES[scheme]}",
            *window,
            *("--enable-logging=stderr", "--v=0", "--dump-dom", url),
        ],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    return done.stdout


class Browser:
    """A tab of a headless Chromium, driven by its DevTools protocol.

    Parameters
    ----------
    folder
        A folder for the browser's profile.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temporary = tempfile.TemporaryDirectory()  # the path of a socket must be short
        self._ids = itertools.count(1)

    def __enter__(self) -> Browser:
        for start in range(_STARTS):
            if (socket := self._started(self._folder / f"profile{start}")) is not None:
                self._socket = socket
                return self
        pytest.skip("Chromium does not start on this machine")

    def _started(self, profile: Path) -> ClientConnection | None:
        """Start the browser; None if it ended by itself before it announced its port."""
        self._process = subprocess.Popen(
            [
                *("chromium", "--headless", "--no-sandbox", "--disable-gpu", *_QUIET.split()),
                *("--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"),
            ],
            env={**os.environ, "TMPDIR": self._temporary.name},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        announced, end = profile / "DevToolsActivePort", time.monotonic() + _PATIENCE
        try:
            while not announced.is_file() or len(announced.read_text().split()) < 2:
                if self._process.poll() is not None:
                    return None
                if time.monotonic() > end:
                    pytest.skip(f"Chromium did not start in {_PATIENCE} s")
                time.sleep(0.2)
            port = announced.read_text().split()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as reply:
                (page,) = (each for each in json.load(reply) if each["type"] == "page")
            return connect(
                page["webSocketDebuggerUrl"],
                max_size=None,
                open_timeout=_PATIENCE,
                ping_timeout=None,
            )
        except BaseException:
            self._end()
            raise

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._end()
        self._temporary.cleanup()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait()

    def send(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol, and return its result."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (message := json.loads(self._socket.recv(_PATIENCE))).get("id") != number:
            pass
        return message["result"]

    def show_on_screen(self, width: int) -> None:
        """Show pages as on a screen of this width, in pixels; a window is at least 500 wide."""
        screen = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **screen)

    def open(self, url: str) -> None:
        """Go to an address."""
        self.send("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of a script, whose promises are awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: Callable[[], object], seconds: float = _PATIENCE) -> None:
        """Wait until a condition holds; fail with the text of the page."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.evaluate("document.body.innerText")
            time.sleep(0.2)

    def shows(self, text: str) -> bool:
        """Whether the page shows a text."""
        return bool(self.evaluate(f"document.body?.innerText.includes({json.dumps(text)})"))

    def type(self, text: str) -> None:
        """Type into the element that has the focus, and press Enter."""
        self.send("Input.insertText", text=text)
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter",
                      windowsVirtualKeyCode=13, text="\r")  # fmt: skip
