"""A new mechanism, kind of publication or estimator is one class and one line of a registry.

Toys of each are registered here, and go from a request to a verified release, estimate and report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pytest
from numpy.typing import NDArray

import gramercy
from gramercy import estimators, mechanisms
from gramercy.archive.bundles.bundle_kinds import read_estimate, read_release
from gramercy.estimators import Estimate, Estimator, Evidence
from gramercy.mechanisms.accounting.gdp import gaussian_mu, gaussian_scale, gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import (
    Additive,
    PublicParameters,
    squared_sensitivity,
    symmetric_matrix,
)
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.drawing import SecondMomentPublisher, publishers
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.publications import SECOND_MOMENT, Publication, publications
from gramercy.schemas.request_parts import MechanismSpec
from tests.support.factories import run_pipeline, write_request

ROWS, P = 400, 3

TOY_MOMENT = replace(SECOND_MOMENT, name="toy-moment", planned="a cautious second moment")


class ToySpec(MechanismSpec):
    """``toy``: four times the variance that the request needs."""

    name: Literal["toy"] = "toy"


@dataclass(frozen=True)
class Toy(Additive):
    """Independent noise of equal scale, twice that of the least noise."""

    name: ClassVar[str] = "toy"
    spec: ClassVar[type[MechanismSpec]] = ToySpec
    publishes: ClassVar[Publication] = TOY_MOMENT
    closed_under_sums: ClassVar[bool] = True

    @classmethod
    def _exact(cls, spec: Any, parameters: PublicParameters) -> Self:
        mu = gdp_mu(spec.epsilon, spec.delta)
        return cls(parameters, 2 * gaussian_scale(squared_sensitivity(parameters), mu))

    @classmethod
    def _published(cls, spec: Any, parameters: PublicParameters) -> Self:
        return cls._exact(spec, parameters)

    @property
    def sd_diagonal(self) -> float:
        return self.scale

    @property
    def sensitivity(self) -> float:
        return math.sqrt(squared_sensitivity(self.parameters))

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(gaussian_mu(squared_sensitivity(self.parameters), self.scale))

    @property
    def law(self) -> NoiseLaw:
        sd = self.scale * self.lattice.squared_radius / self.lattice.divisor
        return NoiseLaw(family="gaussian-iid", sd_diagonal=sd, sd_off_diagonal=sd)

    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        p, scale = self.parameters.p, self.scale * self.lattice.squared_radius
        upper = sampler.rounded_gaussian(scale, p * (p - 1) // 2)
        return symmetric_matrix(upper, sampler.rounded_gaussian(scale, p)), None


class ToyPublisher(SecondMomentPublisher):
    """A second moment under another name."""

    publication = TOY_MOMENT


class ToyDiagonal(Estimator):
    """``toy-diagonal``: the variances alone."""

    name: Literal["toy-diagonal"] = "toy-diagonal"
    factor: float = 1.0

    def fit(self, evidence: Evidence) -> Estimate:
        diagonal = self.factor * np.diag(np.diag(evidence.repaired))
        return Estimate("covariance", {"covariance": diagonal}, {"factor": self.factor})


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers the toys."""
    monkeypatch.setitem(mechanisms.registry, "toy", Toy)
    monkeypatch.setitem(estimators.registry, "toy-diagonal", ToyDiagonal)
    monkeypatch.setitem(publications, TOY_MOMENT.name, TOY_MOMENT)
    monkeypatch.setitem(publishers, TOY_MOMENT.name, ToyPublisher())


@pytest.mark.slow
@pytest.mark.parametrize("folds", [1, 2])
def test_toys_are_published_charged_estimated_and_verified(
    home: Path, tmp_path: Path, folds: int
) -> None:
    rng = np.random.default_rng(3)
    lines = [",".join(map(str, row)) for row in rng.normal(size=(ROWS, P)).round(3)]
    (tmp_path / "table.csv").write_text("\n".join(["c0,c1,c2", *lines]) + "\n")
    request = {
        "mechanism": {"name": "toy", "epsilon": 1.0, "delta": 1e-6},
        "folds": folds,
        "estimates": [{"name": "toy-diagonal", "factor": 0.5}],
    }
    folder = run_pipeline(write_request(tmp_path, request=request, rows=ROWS))

    release = gramercy.open(home / "archive")[f"toy/{folder.name}"]
    assert release.kind == TOY_MOMENT.name
    bundle = read_release(folder / "release")
    (estimate,) = (folder / "estimates").iterdir()
    diagonal = np.diag(np.diag(bundle.repaired))
    np.testing.assert_array_equal(read_estimate(estimate).matrices["covariance"], 0.5 * diagonal)

    needed = gaussian_scale(2, gdp_mu(1.0, 1e-6))
    context = Context.default()
    ledger = context.ledger
    charge = ledger.charge_of("toy", folder.name)
    assert charge.guarantee == Guarantee(gaussian_mu(2, 2 * needed))
    assert charge.guarantee.mu == release.manifest.guarantee.mu

    checked = verify_release(context.archive, "toy", folder.name, ledger)
    assert any("lattice" in words for words in checked.checks)
    assert any("toy-diagonal" in words for words in checked.checks)
    assert not checked.unchecked
