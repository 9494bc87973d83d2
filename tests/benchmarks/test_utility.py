"""The utility benchmark: peers' noise has the scale of its formula, and a cell can be measured."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append, read_results
from benchmarks.utility import cells, page
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import DELTA, Privacy, zcdp_delta
from benchmarks.utility.ours import OURS, scale, unit_noise
from benchmarks.utility.peers import PEERS, classical
from gramercy.mechanisms.accounting.gdp import gdp_delta

N, P = 1000, 16
DATA = Dataset("zeros", np.zeros((N, P)))
METHODS = {method.name: method for method in OURS + PEERS}


def raw(name: str, privacy: Privacy, form: str = "raw") -> list[np.ndarray]:
    drawn = METHODS[name].draws(DATA, privacy, np.random.default_rng(1), 40)
    return [forms[form] * N for forms in drawn]


def rms(noise: list[np.ndarray]) -> float:
    return math.sqrt(np.mean([np.sum(matrix**2) for matrix in noise]))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("gausscov", "zcdp", P * math.sqrt(2) / math.sqrt(2 * 0.5)),
        ("iid-classical", "approx", P * 2 * math.sqrt(math.log(1.25 / DELTA)) / 0.5),
        ("laplace-2p", "pure", math.sqrt(2) * P * 2 * P / 0.5),
        ("lapcov", "pure", math.sqrt(2) * P * math.sqrt((P * P + 3 * P) / 2) / 0.5),
        ("laplace", "pure", unit_noise("laplace", P) / 0.5),
        ("k-norm", "pure", unit_noise("k-norm", P) / 0.5),
        ("matrix-laplace", "pure", unit_noise("matrix-laplace", P) / 0.5),
    ],
)
def test_noise_matches_its_formula(name: str, kind: str, expected: float) -> None:
    assert rms(raw(name, Privacy(kind, 0.5))) == pytest.approx(expected, rel=0.05)


def test_wishart_and_nuclear_noise() -> None:
    centred = raw("wishart-published", Privacy("approx", 1.0), "centred")
    dof = classical.wishart_dof(P, 1.0)
    assert rms(centred) == pytest.approx(math.sqrt(dof * P * (P + 1)), rel=0.05)
    lengths = [np.linalg.norm(matrix, "nuc") for matrix in raw("nuclear-norm", Privacy("pure", 1))]
    assert np.mean(lengths) == pytest.approx(P * (P + 1), rel=0.05)


def test_our_scales_match_the_formulas() -> None:
    pure = Privacy("pure", 0.5)
    assert scale("gaussian", DATA, Privacy("zcdp", 0.5)) == pytest.approx(math.sqrt(2))
    assert scale("laplace", DATA, pure) == pytest.approx(math.sqrt((P * P + 3 * P) / 2) / 0.5)
    assert scale("k-norm", DATA, pure) == pytest.approx(math.sqrt(2) / 0.5)
    assert scale("matrix-laplace", DATA, pure) == pytest.approx(1 / 0.5)


def test_conversions_agree_with_gaussian_noise() -> None:
    asked = Privacy("approx", 1.0)
    assert gdp_delta(asked.mu, 1.0) <= DELTA
    assert zcdp_delta(asked.rho, 1.0) == pytest.approx(DELTA, rel=1e-6)
    assert asked.rho < asked.mu**2 / 2 < 1.3 * asked.rho


def test_cell_is_measured_stored_and_reported(tmp_path: Path) -> None:
    for name in ("gaussian", "gausscov", "separatecov", "adaptivecov", "emcov"):
        result = cells.measure(cells.Cell("breast-cancer", "zcdp", 0.1, name), 2)
        append(tmp_path / "results.jsonl", result)
    held = read_results(tmp_path / "results.jsonl", cells.Result)
    assert held[result.cell] == result
    page.write(tmp_path)
    assert "## Where other methods are better" in (tmp_path / "results.md").read_text()
    assert (tmp_path / "figures/breast-cancer.svg").exists()
