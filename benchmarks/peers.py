"""Other libraries as peers: each runs a script in a Python interpreter of its own."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console


@dataclass(frozen=True)
class Peer:
    """A library that is not a dependency of this project.

    Install it into an environment of its own, ``python -m venv DIR && DIR/bin/pip install
    REQUIREMENT``, and set the environment variable to DIR/bin/python.

    Parameters
    ----------
    title, requirement
        Its name, and what pip installs.
    variable
        The environment variable that names the interpreter.
    """

    title: str
    requirement: str
    variable: str

    def found(self) -> bool:
        """Whether the variable is set; if it is not, print that the peer is left out."""
        if os.environ.get(self.variable):
            return True
        Console().print(
            f"{self.title} is left out: set {self.variable} to a Python interpreter that has "
            f"{self.requirement}.",
            markup=False,
        )
        return False

    def run(
        self,
        script: Path,
        arrays: Mapping[str, NDArray[np.float64]],
        *options: float,
        seconds: int | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Run ``script ARRAYS.npz FOUND.npz OPTIONS``, and return the arrays that it finds.

        Raises `TimeoutError` after so many seconds of processor time, if given.
        """

        def limit() -> None:
            if seconds is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))

        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder, "arrays.npz"), Path(folder, "found.npz")
            np.savez(given, allow_pickle=False, **arrays)
            command = [os.environ[self.variable], *map(str, (script, given, found, *options))]
            done = subprocess.run(command, check=False, capture_output=True, preexec_fn=limit)
            if done.returncode == -signal.SIGXCPU:
                raise TimeoutError
            done.check_returncode()
            with np.load(found) as held:
                return dict(held)


OPENDP = Peer("OpenDP", "opendp[scikit-learn]", "OPENDP_PYTHON")
SMARTNOISE = Peer("SmartNoise SQL", "smartnoise-sql", "SMARTNOISE_PYTHON")
DIFFPRIVLIB = Peer("diffprivlib", "diffprivlib", "DIFFPRIVLIB_PYTHON")
SMARTNOISE_SYNTH = Peer("SmartNoise Synthesizers", "smartnoise-synth", "SMARTNOISE_SYNTH_PYTHON")
