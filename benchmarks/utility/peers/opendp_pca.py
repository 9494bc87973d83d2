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
        "OpenDP's make_private_pca with all components, origin 0 and its default budget split; its "
        "own privacy map gives epsilon for two changed rows. In version 0.16 the acceptance rule "
        "of its eigenvector sampler divides by (u^T Omega u)^(d/2), where the envelope requires "
        "the product. So its vectors are more concentrated than the law that its guarantee is "
        "for; the results are shown unchanged. Measured up to epsilon = 1, because above it the "
        "sampler takes minutes per release.",
        ("pure",),
        draws,
        repetitions=5,
        many_columns=0,
        up_to=1.0,
    ),
)
