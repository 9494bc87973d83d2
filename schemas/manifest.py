"""What a sealed bundle says of itself: the ``dp`` object of its datapackage.json."""

from __future__ import annotations

from typing import Any, Literal

from schemas.contract import Neighbours
from schemas.model import Label, Model, Slug
from schemas.noise import NoiseLaw
from schemas.request import Clip, Unit

FORMAT: Literal[1] = 1


class DatasetFacts(Model):
    """The data set, as the public may know it."""

    id: Slug
    title: str
    curator: str
    version: Label


class RowsFacts(Model):
    """The number of rows: ``public`` under replace-one; else ``noisy``, with its deviation."""

    value: float
    status: Literal["public", "noisy"]
    sd: float


class LatticeFacts(Model):
    """Integer rows are round(2^bits shrink x); see `schemas.lattice`."""

    bits: int
    shrink: float


class GuaranteeFacts(Model):
    """The exact guarantee. `pure` is null where there is no pure epsilon.

    `epsilon` is the smallest that holds at the requested `delta`.
    """

    mu: float
    delta0: float
    pure: float | None
    epsilon: float
    delta: float


class MechanismFacts(Model):
    """The noise: which mechanism, its public constants, and how its arithmetic is done."""

    name: str
    requested_epsilon: float
    requested_delta: float
    constants: dict[str, float]
    calibration: Literal["exact"]
    arithmetic: Literal["exact", "floating-point"]
    lattice: LatticeFacts


class ReleaseManifest(Model):
    """A published second moment.

    Parameters
    ----------
    divisor
        The released matrix is the noisy Gram matrix divided by this number of rows.
    noise
        Noise law of the released matrix.
    card
        The DP card: the same facts in the words of the OpenDP Deployments Registry and of
        NIST SP 800-226.
    """

    format: Literal[1]
    kind: Literal["second-moment"]
    release: str
    published: str
    dataset: DatasetFacts
    neighbours: Neighbours
    unit: Literal["row"]
    columns: tuple[dict[str, Any], ...]
    normalisation: Unit | Clip
    rows: RowsFacts
    divisor: float
    mechanism: MechanismFacts
    guarantee: GuaranteeFacts
    noise: NoiseLaw
    software: dict[str, str]
    card: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """Column names, in the order of the matrix."""
        return [str(column["name"]) for column in self.columns]


class EstimateManifest(Model):
    """An estimated precision matrix.

    Parameters
    ----------
    release, release_sha256
        The release it was computed from, and the digest of that release's SHA256SUMS.
    estimator, penalty
        The settings asked for, and the penalty in force.
    """

    format: Literal[1]
    kind: Literal["precision"]
    estimate: str
    dataset: DatasetFacts
    release: str
    release_sha256: str
    columns: tuple[str, ...]
    estimator: dict[str, Any]
    penalty: float
    privacy: Literal["post-processing of the release; no further privacy cost"]
    software: dict[str, str]
