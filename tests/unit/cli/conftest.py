"""A terminal on which questions are answered."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.factories import run_command

CTRL_C = "\x03\n"

Answer = Callable[..., tuple[int, str]]


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:
        line = super().readline(-1 if size is None else size)
        if line == CTRL_C:
            raise KeyboardInterrupt
        return line


@pytest.fixture
def answer(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Answer:
    """Run ``gramercy new blood.csv`` with these lines as input; return its exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "jane")

    def run(*lines: str, words: tuple[str, ...] = ("blood.csv",)) -> tuple[int, str]:
        with monkeypatch.context() as terminal:
            terminal.setattr("sys.stdin", Keyboard("".join(f"{line}\n" for line in lines)))
            code, out, err = run_command("new", *words, capsys=capsys)
        return code, out + err

    return run
