"""Progress: counts and durations depend on the private table, so only a terminal shows them."""

from __future__ import annotations

import re

import pytest

from gramercy.pipeline.progress import (
    PROGRESS_VARIABLE,
    announce_step,
    rows_bar,
    steps_bar,
)

SECONDS = re.compile(r"\d+\.\d+")


@pytest.mark.parametrize("variable", ["", "FORCE_COLOR", "TTY_COMPATIBLE"])
def test_files_get_neither_counts_nor_durations(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if variable:
        monkeypatch.setenv(variable, "1")
    with rows_bar("summing", 3000) as on_rows:
        on_rows(2917)
    with steps_bar("drawing") as on_steps:
        on_steps(1, 2)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv(PROGRESS_VARIABLE, "1")
    with announce_step("accumulate"):
        pass
    out, err = capsys.readouterr()
    assert "accumulate" in err
    assert not out
    assert not SECONDS.search(err)


@pytest.mark.usefixtures("on_terminal")
def test_terminals_get_counts_and_durations(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PROGRESS_VARIABLE, "1")
    with announce_step("accumulate"), rows_bar("summing", 3000) as on_rows:
        on_rows(2917)
    err = capsys.readouterr().err
    assert "2917/3000" in err
    assert SECONDS.search(err)
