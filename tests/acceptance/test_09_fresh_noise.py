"""Noise is fresh every time, and no parameter can choose it."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer.main

from gramercy import mechanisms
from gramercy.application.request_model import Request
from gramercy.cli.main import app
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.rowwise import RowWise
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.contract import Contract
from tests.support.conformance import CASES, PAIRS, calibrated
from tests.support.factories import run_release, write_request

ROOT = Path(__file__).parents[2]


def noise_alone(mechanism: Any, p: int) -> np.ndarray[Any, Any]:
    if isinstance(mechanism, Additive):
        noisy = mechanism.perturb(np.zeros((p, p), dtype=np.int64), 100)
        assert (noisy.gram == noisy.gram.T).all()
        counted = [] if noisy.rows is None else [noisy.rows]
        return np.array([*noisy.gram[np.triu_indices(p)], *counted])
    if isinstance(mechanism, RowWise):
        return mechanism.randomize(np.zeros((p, 20), dtype=np.int64)).ravel()
    drawn = mechanism.perturb(np.eye(p))
    assert (drawn == drawn.T).all()
    return drawn[np.triu_indices(p)]  # type: ignore[no-any-return]


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("name", "relation"), PAIRS)
def test_two_draws_differ(name: str, relation: str, counted: bool) -> None:
    if counted and (relation == "replace-one" or name == "wishart"):
        pytest.skip("publishes no noisy count")
    # So little privacy that no two draws of an honest lattice are alike by chance.
    epsilon = 0.001 if name == "integer-rows" else 0.1
    mechanism = calibrated(name, p=6, neighbours=relation, epsilon=epsilon, counted=counted)
    one, other = (noise_alone(mechanism, 6) for _ in range(2))
    assert one.size == other.size >= 21
    assert (one == other).mean() < (0.01 if one.size > 100 else 1e-9)
    # Nor is noise shared within a draw.
    assert np.unique(one).size > 0.9 * one.size


@pytest.mark.parametrize(
    ("name", "published"),
    [(name, False) for name in CASES] + [("wishart", True), ("integer-rows", True)],
)
def test_two_versions_of_the_same_data_differ(
    name: str, published: bool, tmp_path: Path, home: Path
) -> None:
    case = CASES[name]
    mechanism = {"name": name, "epsilon": 0.3, "delta": case.delta(1e-6), **case.keys}
    if published:
        mechanism["calibration"] = "published"
        if name == "integer-rows":  # what the paper's scale claims would be refused
            mechanism["snr"] = -40.0
            del mechanism["epsilon"]
    asked = {"normalisation": case.normalisation, "mechanism": mechanism, "estimates": []}
    first = run_release(write_request(tmp_path, request=asked))
    second = run_release(write_request(tmp_path, request=asked | {"version": "v2"}))
    folders = [home / "archive/toy" / r / "release" for r in (first, second)]
    kinds = {"rows": "rows.parquet", "integer-rows": "rows.parquet", "local": "reports.parquet"}
    for file in {kinds.get(name), "precision.npy" if name == "output" else "second_moment.npy"}:
        if file is None:
            continue
        read = np.load if file.endswith(".npy") else pd.read_parquet
        one, other = (np.asarray(read(folder / file)) for folder in folders)
        assert one.shape == other.shape
        assert np.isfinite(one).all()
        assert (one != other).mean() > 0.9
    assert math.isfinite(float(one.sum()))


def test_no_parameter_sets_the_seed() -> None:
    fields = set(Request.model_fields) | set(Contract.model_fields)
    for mechanism in mechanisms.registry.values():
        fields |= set(mechanism.spec.model_fields)
        for name, method in inspect.getmembers(mechanism, callable):
            if not name.startswith("__"):
                fields |= set(inspect.signature(method).parameters)
    for law in sampler.__all__:
        if callable(getattr(sampler, law)):
            fields |= set(inspect.signature(getattr(sampler, law)).parameters)
    assert {"epsilon", "delta", "scale", "shape", "size", "gram", "rows", "precision"} <= fields
    group = typer.main.get_group(app)
    for command in group.commands.values():
        fields |= {parameter.name or "" for parameter in command.params}
    chosen = ("seed", "rng", "random_state", "generator", "entropy")
    assert not {field for field in fields if any(word in field for word in chosen)}
    rooms = (
        "mechanisms",
        "application",
        "tasks",
        "flows",
        "tables",
        "ledger",
        "archive",
        "schemas",
    )
    for room in rooms:
        files = list((ROOT / "gramercy" / room).glob("*.py"))
        assert files
        for path in files:
            words = path.read_text().lower()
            for word in ("seed", "default_rng", "np.random", "import random"):
                assert word not in words, path
