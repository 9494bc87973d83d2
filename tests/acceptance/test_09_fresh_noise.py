"""Every release draws new noise, and no parameter determines it."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy import mechanisms
from gramercy.cli.commands import COMMANDS, load
from gramercy.mechanisms.marginals import Marginals
from gramercy.mechanisms.mechanism import Additive, RowWise
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas.contract import Contract
from tests.support.conformance import ALL_PAIRS, CASES, calibrated
from tests.support.factories import run_release, write_request

ROOT = Path(__file__).parents[2]


def noise_alone(mechanism: Any, p: int) -> np.ndarray[Any, Any]:
    if isinstance(mechanism, Additive):
        noisy = mechanism.perturb(np.zeros((p, p), dtype=np.int64), 100)
        assert (noisy.gram == noisy.gram.T).all()
        return np.array(noisy.gram[np.triu_indices(p)])
    if isinstance(mechanism, RowWise):
        return mechanism.randomize(np.zeros((p, 20), dtype=np.int64)).ravel()
    if isinstance(mechanism, Marginals):
        zeros = np.zeros(10, dtype=np.int64)
        drawn = [each.perturb([zeros] * each.histograms) for each in mechanism.noise.draws]
        return np.concatenate([np.concatenate(histograms) for histograms in drawn])
    drawn = mechanism.perturb(np.eye(p))
    assert (drawn == drawn.T).all()
    return drawn[np.triu_indices(p)]  # type: ignore[no-any-return]


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("name", "relation"), ALL_PAIRS)
def test_two_draws_differ(name: str, relation: str, counted: bool) -> None:
    if counted and (relation == "replace-one" or name in {"wishart", "marginals"}):
        pytest.skip("publishes no noisy count")
    # The noise is so large that draws are rarely equal by chance.
    epsilon = 0.001 if name in {"integer-rows", "marginals"} else 0.1
    mechanism = calibrated(
        name, p=6, neighbours=relation, epsilon=epsilon, publishes_noisy_count=counted
    )
    first, second = (noise_alone(mechanism, 6) for _ in range(2))
    assert first.size == second.size >= 21
    assert (first == second).mean() < (0.01 if first.size > 100 else 1e-9)
    # Entries of one draw do not share noise.
    assert np.unique(first).size > 0.9 * first.size
    if counted and isinstance(mechanism, Additive):
        # Two counts may be equal by chance; twenty are so less often than once in 10^20.
        zeros = np.zeros((6, 6), dtype=np.int64)
        assert len({mechanism.perturb(zeros, 100).rows for _ in range(20)}) > 1


def published_numbers(folder: Path) -> list[np.ndarray[Any, Any]]:
    """The noisy numbers of a release: a matrix, rows, and counts of the first stage."""
    matrices = [folder / "second_moment.npy", folder / "precision.npy"]
    rows = [folder / "rows.parquet", folder / "reports.parquet"]
    numbers = [np.load(path) for path in matrices if path.exists()]
    numbers += [pd.read_parquet(path).to_numpy() for path in rows if path.exists()]
    if (counts := folder / "marginals.parquet").exists():
        frame = pd.read_parquet(counts)
        numbers.append(frame.loc[frame["stage"] == 1, "count"].to_numpy())
    assert numbers
    return numbers


@pytest.mark.parametrize(
    ("name", "published_scale"),
    [(name, False) for name in CASES] + [("wishart", True), ("integer-rows", True)],
)
def test_two_versions_of_the_same_data_differ(
    name: str, published_scale: bool, tmp_path: Path, home: Path
) -> None:
    case = CASES[name]
    mechanism = {"name": name, "epsilon": 0.3, "delta": case.delta(1e-6), **case.keys}
    if published_scale:
        mechanism["calibration"] = "published"
        if name == "integer-rows":  # the claim of the paper's scale would be refused
            mechanism["snr"] = -40.0
            del mechanism["epsilon"]
    request = {"normalisation": case.normalisation, "mechanism": mechanism, "estimates": []}
    first = run_release(write_request(tmp_path, request=request))
    second = run_release(write_request(tmp_path, request=request | {"version": "v2"}))
    folders = [home / "archive/toy" / r / "release" for r in (first, second)]
    for first_noisy, second_noisy in zip(*map(published_numbers, folders), strict=True):
        assert first_noisy.shape == second_noisy.shape
        assert np.isfinite(first_noisy).all()
        assert (first_noisy != second_noisy).mean() > 0.9
    assert math.isfinite(float(first_noisy.sum()))


def test_no_parameter_sets_the_seed() -> None:
    fields = set(Request.model_fields) | set(Contract.model_fields)
    for mechanism in mechanisms.registry.values():
        fields |= set(mechanism.spec.model_fields)
        for name, method in inspect.getmembers(mechanism, callable):
            if not name.startswith("__"):
                fields |= set(inspect.signature(method).parameters)
    for function in sampler.__all__:
        if callable(getattr(sampler, function)):
            fields |= set(inspect.signature(getattr(sampler, function)).parameters)
    assert {"epsilon", "delta", "scale", "shape", "size", "gram", "rows", "precision"} <= fields
    for command in map(load, COMMANDS):
        fields |= {parameter.name or "" for parameter in command.params}
    seed_names = ("seed", "rng", "random_state", "generator", "entropy")
    assert not {field for field in fields if any(word in field for word in seed_names)}
    subpackages = (
        "mechanisms",
        "pipeline",
        "tasks",
        "flows",
        "tables",
        "ledger",
        "archive",
        "schemas",
    )
    for subpackage in subpackages:
        files = list((ROOT / "gramercy" / subpackage).rglob("*.py"))
        files = [path for path in files if path.parent.name != "demo"]  # a made-up table
        assert files
        for path in files:
            words = path.read_text().lower()
            for word in ("seed", "default_rng", "np.random", "import random"):
                assert word not in words, path
