"""Run the steps of a release in this process, and kill it, as with -9, at one point of them."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.making import run_steps

# Where to die: before or after the call of a function, at its n-th call.
POINTS = {
    "before the charge": ("ledger.ledger", "Ledger.charge", "before", 1),
    "after the charge": ("ledger.ledger", "Ledger.charge", "after", 1),
    "after the mark 'drawn'": ("ledger.ledger", "Ledger.mark", "after", 1),
    "after the draw": ("mechanisms.gaussian", "Gaussian.perturb", "after", 1),
    "after half the files": ("archive.release", "write_matrix", "after", 1),
    "before the seal": ("archive.store", "Archive.seal", "before", 1),
    "after the seal": ("archive.store", "Archive.seal", "after", 1),
    "after the mark 'sealed'": ("ledger.ledger", "Ledger.mark", "after", 2),
    "before the rename": ("archive.store", "Archive.commit", "before", 1),
    "after the rename": ("archive.store", "Archive.commit", "after", 1),
    "before the mark 'published'": ("ledger.ledger", "Ledger.mark", "before", 3),
    "after the mark 'published'": ("ledger.ledger", "Ledger.mark", "after", 3),
}
UNCHARGED = {"before the charge"}
VISIBLE = {
    "after the rename",
    "before the mark 'published'",
    "after the mark 'published'",
}


def arm(point: str) -> None:
    module_name, name, when, turn = POINTS[point]
    holder: Any = importlib.import_module(module_name)
    *outer, last = name.split(".")
    for part in outer:
        holder = getattr(holder, part)
    original, calls = getattr(holder, last), 0

    def deadly(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == turn and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if calls == turn and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(holder, last, deadly)


if __name__ == "__main__":
    arm(sys.argv[1])
    run_steps(Path(sys.argv[2]))
