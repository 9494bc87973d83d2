"""The drill of docs/how-to/backup.md: after every loss, nothing is charged or drawn twice."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from gramercy.archive.seal.signing import public_keys
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from tests.support.documents import ROOT, blocks
from tests.support.factories import run_command, write_request

PAGE = ROOT / "docs" / "how-to" / "backup.md"


def _forget_runs() -> None:
    """What a reset of Prefect's database does to the runs; the server is that of all tests."""
    from prefect import get_client

    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs():
            client.delete_flow_run(run.id)


@pytest.mark.slow
def test_drill_runs_from_top_to_bottom(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    prefect_server: None,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second", "third"):
        write_request(tmp_path, request={"version": name}).rename(tmp_path / f"{name}.yaml")
    drill = PAGE.read_text().partition("## The drill")[0].count("\n")
    lines = [
        words
        for language, text, line in blocks(PAGE)
        if language == "sh" and line > drill
        for words in map(shlex.split, text.splitlines())
    ]
    for program, *words in lines:
        if program == "export":
            name, _, value = words[0].partition("=")
            monkeypatch.setenv(name, value.replace("$PWD", str(tmp_path)))
        elif program == "prefect":
            _forget_runs()
        elif program == "gramercy":
            code, _, err = run_command(*words, capsys=capsys)
            assert code == 0, (words, err)
        else:
            assert program in {"cp", "mv", "rm"}
            subprocess.run([program, *words], check=True)
    home = Home.default()
    assert len(lines) == 23
    assert len(public_keys(home.keys)) == 2
    states = [(each.version, str(each.state)) for each in Ledger.of(home).charges("toy")]
    assert states == [(name, "published") for name in ("first", "second", "third")]
