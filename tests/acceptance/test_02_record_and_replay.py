"""Neighbouring tables ask for the same noise, and differ by no more than the claim before it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mechanisms
from mechanisms import sampler
from schemas.contract import Contract
from schemas.lattice import Lattice
from schemas.request import Clip, Unit
from tables.accumulate import accumulate
from tables.read import open_source

P, N = 4, 12
BASE = np.random.default_rng(3).normal(size=(N, P))
E = np.eye(P)
NASTY = {
    "nan": np.full(P, np.nan),
    "one nan": np.array([np.nan, 1, 0, 0]),
    "inf": np.full(P, np.inf),
    "minus inf": np.array([-np.inf, 0, 0, 1]),
    "1e308": np.full(P, 1e308),
    "mixed huge": np.array([1e308, -1e308, 5e-324, 0]),
    "5e-324": np.full(P, 5e-324),
    "one 5e-324": np.array([5e-324, 0, 0, 0]),
    "1e-170": np.full(P, 1e-170),
    "1e200": np.array([1e200, 1e-200, 1, 0]),
    "zero": np.zeros(P),
    "minus zero": np.full(P, -0.0),
    "duplicate": BASE[0],
    "norm 3": 3 * E[0],
    "norm 3 diagonal": np.full(P, 1.5),
    "antipodal": -BASE[0],
    "e0": E[0],
    "e1": E[1],
    "minus e0": -E[0],
    "diagonal": np.full(P, 0.5),
    "just outside": E[0] * np.nextafter(1, 2),
    "just inside": E[0] * np.nextafter(1, 0),
    "out of bounds": np.array([1e6, 0, 0, 0]),
    "at the bounds": np.array([5.0, -5.0, 5.0, -5.0]),
}
CHANGES = [(a, b) for a in ("e0", "zero", "diagonal") for b in NASTY if a != b]


def contract(neighbours: str, source: str) -> Contract:
    return Contract.model_validate(
        {
            "id": "x",
            "title": "x",
            "curator": "x",
            "source": source,
            "rows": N + 1,
            "neighbours": neighbours,
            "budget": {"epsilon": 1, "delta": 1e-3},
            "columns": {
                f"c{i}": {"lower": -5, "upper": 5, "centre": 0, "scale": 1} for i in range(P)
            },
        }
    )


def record(
    rows: np.ndarray,
    neighbours: str,
    how: Unit | Clip,
    name: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[list[tuple[float, int]], np.ndarray, float, float]:
    """Noise requests, and the svec of what they are added to, with its count; scale and claim."""
    file = folder / "t.parquet"
    pq.write_table(pa.table({f"c{i}": rows[:, i] for i in range(P)}), file)
    known = contract(neighbours, str(file))
    counted = neighbours == "add-remove" and isinstance(how, Clip)
    mechanism = mechanisms.registry[name].calibrated(
        p=P, n=N, neighbours=neighbours, epsilon=1.0, delta=1e-6, counted=counted
    )
    lattice = Lattice.fitting(P, N, mechanism.facts()["scale"])
    sums = accumulate(open_source(str(file)), known, how, lattice)
    asked: list[tuple[float, int]] = []

    def no_noise(scale: float, size: int) -> Any:
        asked.append((scale, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(sampler, "rounded_gaussian", no_noise)
    noisy = mechanism.perturb(sums.gram, sums.rows, lattice)
    diagonal, off = asked[1][0], asked[0][0]
    whitened = [np.diag(noisy.gram) / diagonal, noisy.gram[np.triu_indices(P, 1)] / off]
    if counted:
        assert noisy.rows == sums.rows
        whitened.append(np.array([sums.rows / asked[2][0]]))
    return asked, np.concatenate(whitened), mechanism.guarantee.mu, float(sums.rows)


@pytest.mark.parametrize("how", [Unit(), Clip(kind="clip", radius=2.0)], ids=["unit", "clip"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", list(mechanisms.registry))
def test_neighbours(
    name: str,
    neighbours: str,
    how: Unit | Clip,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(CHANGES) >= 30
    worst = 0.0
    for a, b in CHANGES:
        one = np.vstack([BASE, NASTY[a]])
        other = np.vstack([BASE, NASTY[b]]) if neighbours == "replace-one" else BASE
        asked, left, claim, _ = record(one, neighbours, how, name, tmp_path, monkeypatch)
        asked_too, right, _, _ = record(other, neighbours, how, name, tmp_path, monkeypatch)
        assert asked == asked_too
        distance = float(np.linalg.norm(left - right))
        assert distance <= claim * (1 + 1e-12), (a, b)
        worst = max(worst, distance / claim)
    if isinstance(how, Unit):
        assert worst > 0.99  # the claim is attained: none of it is slack


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_position_does_not_matter(neighbours: str, tmp_path: Path) -> None:
    """A row's integers do not depend on where it stands, so neither does the sum."""
    rows = np.vstack([BASE, *NASTY.values()])
    grams = []
    for shift in range(4):
        file = tmp_path / "t.parquet"
        moved = np.roll(rows, shift * 7, axis=0)
        pq.write_table(pa.table({f"c{i}": moved[:, i] for i in range(P)}), file)
        known = contract(neighbours, str(file)).model_copy(update={"rows": len(rows)})
        grams.append(accumulate(open_source(str(file)), known, Unit(), Lattice(P, 12)).gram)
    assert all((gram == grams[0]).all() for gram in grams)
    assert math.isfinite(float(grams[0].sum()))
