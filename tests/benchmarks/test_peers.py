"""Peers run in an interpreter of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import Peer

PEER = Peer("A library", "library[extra]", "LIBRARY_PYTHON")
DOUBLE = """
import sys, numpy as np
given, found, factor = sys.argv[1:]
np.savez(found, product=float(factor) * np.load(given)["x"])
"""


def test_a_script_gets_arrays_and_returns_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PEER.variable, sys.executable)
    script = tmp_path / "double.py"
    script.write_text(DOUBLE)
    assert PEER.found()
    found = PEER.run(script, {"x": np.array([1.0, 2.5])}, 2.0)
    assert found["product"].tolist() == [2.0, 5.0]


def test_scripts_fail_loudly_and_end_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PEER.variable, sys.executable)
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit(3)")
    with pytest.raises(subprocess.CalledProcessError):
        PEER.run(script, {})
    script.write_text("while True: pass")
    with pytest.raises(TimeoutError):
        PEER.run(script, {}, seconds=1)


def test_a_peer_without_an_interpreter_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(PEER.variable, raising=False)
    assert not PEER.found()
    printed = " ".join(capsys.readouterr().out.split())
    assert printed == (
        "A library is left out: set LIBRARY_PYTHON to a Python interpreter that has library[extra]."
    )
