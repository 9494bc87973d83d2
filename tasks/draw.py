"""The draw: exact sums and fresh noise become the files of a release."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archive.card import card
from archive.release import software, write_release
from estimators.denoise import denoise
from ledger import Charge
from mechanisms.mechanism import Noisy
from schemas.manifest import (
    FORMAT,
    DatasetFacts,
    GuaranteeFacts,
    LatticeFacts,
    MechanismFacts,
    ReleaseManifest,
    RowsFacts,
)
from schemas.noise import NoiseLaw
from tables.accumulate import Accumulated
from tasks.plan import Plan


def draw_into(folder: Path, plan: Plan, sums: Accumulated, charge: Charge) -> None:
    """Draw the noise of a charge that is on record, and write the release into an empty folder.

    Parameters
    ----------
    folder
        Staged, not yet visible.
    plan
        Mechanism and lattice.
    sums
        The exact Gram matrix and number of rows. Private; only noisy forms of them are written.
    charge
        What was charged, which is what the manifest states.
    """
    noisy = plan.mechanism.perturb(sums.gram, sums.rows, plan.lattice)
    gram = noisy.gram.astype(np.float64) / plan.lattice.divisor
    rows = _rows(plan, noisy, gram)
    law = plan.mechanism.law(plan.lattice).divided_by(rows.value)
    raw = gram / rows.value
    write_release(folder, _manifest(plan, charge, rows, law), raw, denoise(raw, law))


def _rows(plan: Plan, noisy: Noisy, gram: NDArray[np.float64]) -> RowsFacts:
    """The number of rows to divide by, from what is public after the draw.

    Under add-remove it is the noisy count where one was paid for, else the noisy trace: unit rows
    each add one to it. At least one, so that the division is always defined.
    """
    if plan.contract.neighbours == "replace-one":
        return RowsFacts(value=float(plan.contract.rows), status="public", sd=0.0)
    if noisy.rows is not None:
        sd = plan.mechanism.facts()["sd_rows"]
        return RowsFacts(value=max(1.0, float(noisy.rows)), status="noisy", sd=sd)
    sd = plan.mechanism.law(plan.lattice).sd_diagonal * float(np.sqrt(plan.lattice.p))
    return RowsFacts(value=max(1.0, float(np.trace(gram))), status="noisy", sd=sd)


def _manifest(plan: Plan, charge: Charge, rows: RowsFacts, law: NoiseLaw) -> ReleaseManifest:
    contract, spec = plan.contract, plan.request.mechanism
    pure = charge.guarantee.pure
    guarantee = GuaranteeFacts(
        mu=charge.guarantee.mu,
        delta0=charge.guarantee.delta0,
        pure=pure if np.isfinite(pure) else None,
        epsilon=charge.guarantee.epsilon(spec.delta),
        delta=spec.delta,
    )
    mechanism = MechanismFacts(
        name=plan.mechanism.name,
        requested_epsilon=spec.epsilon,
        requested_delta=spec.delta,
        constants=plan.mechanism.facts(),
        calibration="exact",
        arithmetic=plan.mechanism.arithmetic,
        lattice=LatticeFacts(bits=plan.lattice.bits, shrink=plan.lattice.shrink),
    )
    return ReleaseManifest(
        format=FORMAT,
        kind="second-moment",
        release=charge.release,
        published=datetime.datetime.now(datetime.UTC).date().isoformat(),
        dataset=DatasetFacts(
            id=contract.id,
            title=contract.title,
            curator=contract.curator,
            version=plan.request.version,
        ),
        neighbours=contract.neighbours,
        unit=contract.unit,
        columns=tuple(contract.public_columns()),
        normalisation=plan.request.normalisation,
        rows=rows,
        divisor=rows.value,
        mechanism=mechanism,
        guarantee=guarantee,
        noise=law,
        software=software(),
        card=card(contract, plan.request.normalisation, mechanism, guarantee),
    )
