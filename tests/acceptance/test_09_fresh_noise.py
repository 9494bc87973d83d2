"""Noise is fresh every time, and nobody can choose it."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import typer.main

import mechanisms
from gramercy.cli import app
from mechanisms import sampler
from schemas.contract import Contract
from schemas.lattice import Lattice
from tasks.request import Request
from tests.making import run_steps, scene

ROOT = Path(__file__).parents[2]


def test_two_draws_differ() -> None:
    lattice = Lattice(6, 12)
    gram = np.zeros((6, 6), dtype=np.int64)
    for mechanism in mechanisms.registry.values():
        made = mechanism.calibrated(p=6, n=100, neighbours="replace-one", epsilon=1, delta=1e-6)
        one, other = (made.perturb(gram, 100, lattice).gram for _ in range(2))
        assert (one == one.T).all()
        assert ((one != other).sum()) == one.size


def test_two_versions_of_the_same_data_differ(tmp_path: Path, home: Path) -> None:
    first = run_steps(scene(tmp_path))
    second = run_steps(scene(tmp_path, request={"version": "v2"}))
    files = [home / "archive/toy" / r / "release/second_moment.npy" for r in (first, second)]
    one, other = (np.load(file) for file in files)
    assert (one != other).all()


def test_nobody_chooses_the_seed() -> None:
    fields = set(Request.model_fields) | set(Contract.model_fields)
    for mechanism in mechanisms.registry.values():
        fields |= set(mechanism.spec.model_fields)
        fields |= set(inspect.signature(mechanism.perturb).parameters)
    fields |= set(inspect.signature(sampler.rounded_gaussian).parameters)
    group = typer.main.get_group(app)
    for command in group.commands.values():
        fields |= {parameter.name or "" for parameter in command.params}
    assert not {field for field in fields if "seed" in field or "rng" in field or "random" in field}
    for room in ("mechanisms", "tasks", "flows", "tables", "ledger", "archive", "schemas"):
        for path in (ROOT / room).glob("*.py"):
            assert "seed" not in path.read_text().lower(), path
