"""Integer rows never leave the ball, for any input rows."""

from __future__ import annotations

import numpy as np
import pytest

from gramercy.common.lattice import Lattice
from gramercy.schemas.normalisation import Clip, Unit
from gramercy.tables.sums.row_transform import integer_rows, normalise
from tests.support.factories import at_scale

ROWS = at_scale(100_000, 1_000_000)


def squares(q: np.ndarray) -> np.ndarray:
    units = q.astype(object)
    return (units * units).sum(axis=0)


def adversarial(p: int, rows: int) -> np.ndarray:
    """Rows whose cells end in .5 on the lattice, or whose scale is extreme."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(p, rows))
    x[:, ::5] = rng.choice([-1.0, 1.0], size=x[:, ::5].shape)
    x[:, 1::5] *= 10.0 ** rng.integers(-300, 300, size=x[:, 1::5].shape[1])
    x[:, 2::5] = np.round(x[:, 2::5], 2)
    x[:, 3::5] = 0
    x[0, 3::5] = 5e-324
    return x


@pytest.mark.parametrize("bits", [10, 13, 20])
@pytest.mark.parametrize(
    "normalisation", [Unit(), Clip(kind="clip", radius=0.7)], ids=["unit", "clip"]
)
def test_integer_rows_stay_inside_the_ball(bits: int, normalisation: Unit | Clip) -> None:
    p = 5
    lattice = Lattice(p, bits)
    q = integer_rows(normalise(adversarial(p, ROWS), normalisation), lattice)
    assert (q == np.rint(q)).all()
    assert (squares(q) <= lattice.squared_radius).all()


@pytest.mark.parametrize("p", [1, 2, 64])
def test_unnormalised_rows_stay_inside_the_ball(p: int) -> None:
    """The check of the lattice suffices for rows that were not normalised."""
    lattice = Lattice(p, 12)
    x = adversarial(p, ROWS // 10)
    x[0, ::7], x[0, 1::7], x[:, 2::7] = np.nan, np.inf, 3 / np.sqrt(p)
    q = integer_rows(x, lattice)
    assert np.isfinite(q).all()
    assert (squares(q) <= lattice.squared_radius).all()


def test_rounding_is_to_the_nearest_integer() -> None:
    lattice = Lattice(2, 10)
    x = np.array([[0.3, -0.6], [0.4, 0.8]])
    assert (np.abs(integer_rows(x, lattice) - x * lattice.unit_length) <= 0.5).all()
