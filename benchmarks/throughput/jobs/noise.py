"""Noise per value: exact integers, OpenDP's integers, and numpy's insecure doubles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.throughput.cells import Cell, Contender
from gramercy.mechanisms.sampling import sampler

SCALE = 2.0**30 / 3  # in lattice units, for a release of about 500 columns
_NARROW = 1000.0
_FEW = 20_000  # values that OpenDP draws at once


@contextmanager
def job(cell: Cell, _: Path) -> Iterator[dict[str, Contender]]:
    rng, size = np.random.default_rng(0), cell.rows
    yield {
        "Gramercy: rounded Gaussian": Contender(lambda: sampler.rounded_gaussian(SCALE, size)),
        "Gramercy: rounded Laplace": Contender(lambda: sampler.rounded_laplace(SCALE, size)),
        "Gramercy: discrete Gaussian": Contender(lambda: sampler.discrete_gaussian(_NARROW, size)),
        "numpy: normal doubles": Contender(lambda: rng.standard_normal(size)),
        **opendp(size),
    }


def opendp(size: int) -> dict[str, Contender]:
    """OpenDP, if installed; of many values it draws only a share."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}
    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T=int))
    gaussian = dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=SCALE)
    laplace = dp.m.make_laplace(integers, dp.l1_distance(T=float), scale=SCALE)
    few = min(size, _FEW)
    return {
        "OpenDP: discrete Gaussian": Contender(lambda: gaussian([0] * few), few / size),
        "OpenDP: discrete Laplace": Contender(lambda: laplace([0] * few), few / size),
    }
