"""OpenDP's DP-PCA (its implementation of EMCov), run in a separate interpreter.

OpenDP is not a dependency of this project: install it into a separate environment, ``python -m venv
DIR && DIR/bin/pip install "opendp[scikit-learn]"``, and set OPENDP_PYTHON to DIR/bin/python.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import Privacy
from benchmarks.utility.matrices import Rng, assemble, plausible
from benchmarks.utility.method import Forms, Method

VARIABLE = "OPENDP_PYTHON"
WORKER = Path(__file__).with_name("opendp_worker.py")


def draws(data: Dataset, privacy: Privacy, _: Rng, times: int) -> Iterator[Forms]:
    """Yield releases drawn with OpenDP's own generator, which cannot be seeded."""
    with tempfile.TemporaryDirectory() as folder:
        rows, found = Path(folder, "rows.npy"), Path(folder, "found.npz")
        np.save(rows, data.rows)
        options = [WORKER, rows, found, privacy.epsilon, times]
        command = [os.environ[VARIABLE], *map(str, options)]
        subprocess.run(command, check=True, capture_output=True)
        with np.load(found) as arrays:
            squares, vectors = arrays["squares"] / data.n, arrays["vectors"]
    for values, columns in zip(squares, vectors, strict=True):
        yield {
            "published": assemble(columns, values),
            "projected": assemble(columns, plausible(values[::-1])[::-1]),
        }


METHODS = (
    Method(
        "opendp-pca",
        "OpenDP DP-PCA",
        "OpenDP's make_private_pca, all components, origin known to be 0, as it splits its budget; "
        "its own map for two changed rows says that the guarantee is epsilon. In version 0.16 the "
        "acceptance rule of its eigenvector sampler divides by (u^T Omega u)^(d/2) where the "
        "envelope asks for the product, so that its vectors are more concentrated than the law "
        "its guarantee speaks of; it is shown as it is. Measured up to epsilon = 1: beyond, the "
        "sampler takes minutes a release.",
        ("pure",),
        draws,
        repetitions=5,
        many_columns=0,
        up_to=1.0,
    ),
)
