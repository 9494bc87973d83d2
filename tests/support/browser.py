"""Pages as rendered by a browser, after their scripts have run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_chromium = pytest.mark.skipif(
    not shutil.which("chromium"), reason="Chromium is not on this machine"
)

_SCHEMES = {"dark": "0", "light": "1"}
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
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    return done.stdout
