"""What bundles say of themselves, worked out from public facts: for writer and verifier alike."""

from __future__ import annotations

import math

import numpy as np

import mechanisms
from archive.card import card
from archive.release import Array, ReleaseBundle, software
from estimators import Estimator, Evidence
from mechanisms.mechanism import Mechanism
from schemas.errors import RequestError
from schemas.lattice import Lattice
from schemas.manifest import (
    FORMAT,
    Asked,
    CalibrationFacts,
    EstimateManifest,
    GuaranteeFacts,
    LatticeFacts,
    ReleaseManifest,
    RowsFacts,
)


def calibrate(asked: Asked) -> tuple[Mechanism, Lattice]:
    """The noise and the lattice of a release, from public facts alone."""
    known = mechanisms.registry[asked.mechanism["name"]]
    spec = known.spec.model_validate(asked.mechanism)
    p, n = len(asked.names), asked.dataset.rows
    mechanism = known.calibrated(
        p=p,
        n=n,
        neighbours=asked.neighbours,
        epsilon=spec.epsilon,
        delta=spec.delta,
        counted=asked.counted,
    )
    return mechanism, Lattice.fitting(p, n, mechanism.scale)


def rows_facts(asked: Asked, mechanism: Mechanism, lattice: Lattice, noisy: float) -> RowsFacts:
    """The number of rows to divide by.

    Parameters
    ----------
    asked, mechanism, lattice
        As from `calibrate`.
    noisy
        The noisy count where one was paid for, else the noisy trace: unit rows each add one to
        it. Taken as one where it is less, so that the division is always defined.
    """
    if asked.neighbours == "replace-one":
        return RowsFacts(value=asked.dataset.rows, status="public", sd=0.0)
    sd = mechanism.sd_rows or mechanism.law(lattice).sd_diagonal * math.sqrt(lattice.p)
    return RowsFacts(value=max(1.0, noisy), status="noisy", sd=sd)


def release_manifest(
    asked: Asked, *, release: str, published: str, rows: RowsFacts, versions: dict[str, str]
) -> ReleaseManifest:
    """The manifest of a release; all but the keywords follows from what was asked."""
    mechanism, lattice = calibrate(asked)
    exact, delta = mechanism.guarantee, asked.mechanism["delta"]
    guarantee = GuaranteeFacts(
        mu=exact.mu,
        delta0=exact.delta0,
        pure=exact.pure if math.isfinite(exact.pure) else None,
        epsilon=exact.epsilon(delta),
        delta=delta,
    )
    calibration = CalibrationFacts(
        constants=mechanism.facts(),
        arithmetic=mechanism.arithmetic,
        lattice=LatticeFacts(bits=lattice.bits, shrink=lattice.shrink),
    )
    return ReleaseManifest(
        **{name: getattr(asked, name) for name in Asked.model_fields},
        format=FORMAT,
        kind="second-moment",
        release=release,
        published=published,
        rows=rows,
        calibration=calibration,
        guarantee=guarantee,
        noise=mechanism.law(lattice).divided_by(rows.value),
        card=card(asked, calibration, guarantee),
        software=versions,
    )


def fit(bundle: ReleaseBundle, estimator: Estimator) -> tuple[EstimateManifest, Array]:
    """An estimate and what it says of itself.

    Raises
    ------
    RequestError
        If the settings give no finite matrix.
    """
    facts = bundle.manifest
    evidence = Evidence(bundle.raw, bundle.denoised, facts.noise, facts.rows.value)
    found = estimator.fit(evidence)
    if not np.isfinite(found.matrix).all():
        raise RequestError(
            f"{estimator.name}: these settings give no finite matrix.", "Use a larger penalty."
        )
    manifest = EstimateManifest(
        format=FORMAT,
        kind="precision",
        estimate=estimator.id,
        dataset=facts.dataset,
        release=facts.release,
        release_sha256=bundle.sha256,
        names=tuple(facts.names),
        estimator=estimator.model_dump(),
        penalty=found.penalty,
        privacy="post-processing of the release; no further privacy cost",
        software=software(),
    )
    return manifest, found.matrix
