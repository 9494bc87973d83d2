"""Commands whose output has no reader, such as in ``gramercy list | head -1``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gramercy.schemas import families

GRAMERCY = (sys.executable, "-m", "gramercy")


@pytest.mark.slow
def test_reader_that_has_ended(home: Path) -> None:
    """The exit code is that of the command, and no traceback is printed."""
    for words, code in (("mechanisms", "--json"), 1), (("nothing", "--json"), 2):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run(
                [*GRAMERCY, *words], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
            )
        finally:
            os.close(writer)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert (families.USAGE.code in done.stderr) == (code == 2)


@pytest.mark.slow
def test_closed_output(home: Path) -> None:
    script = 'exec "$@" >&- 2>&-'
    for words, code in (("mechanisms",), 0), (("nothing", "--json"), 2):
        done = subprocess.run(["sh", "-c", script, "sh", *GRAMERCY, *words], check=False)
        assert done.returncode == code
