"""What bundles say of themselves, worked out from public facts: for writer and verifier alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from gramercy import mechanisms
from gramercy.application.public_parameters import setting
from gramercy.archive.card import card
from gramercy.archive.release_bundle import ReleaseBundle, software
from gramercy.estimators import Estimate, Estimator
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.schemas.errors import GuaranteeRefused, RequestError
from gramercy.schemas.manifest import (
    FORMAT,
    Asked,
    CalibrationFacts,
    EstimateManifest,
    GuaranteeFacts,
    LatticeFacts,
    ReleaseManifest,
    RowsFacts,
)
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request import MechanismSpec, Whole


def calibrate(asked: Asked) -> Mechanism:
    """The noise of a release, from public facts alone.

    Raises
    ------
    RequestError
        If the mechanism has no meaning for such a table.
    GuaranteeRefused
        If the exact guarantee of the noise is weaker than what was asked for.
    """
    known = mechanisms.registry[asked.mechanism["name"]]
    spec = known.spec.model_validate(asked.mechanism)
    if isinstance(asked.normalisation, Whole) != (known.name == "integer-rows"):
        raise RequestError(
            "key 'normalisation': 'whole' and the mechanism 'integer-rows' go together.",
            "Use both, or neither.",
        )
    mechanism = known.of(spec, setting(asked))
    refuse_weaker(mechanism, spec)
    if asked.folds > 1:
        _check_folds(asked, mechanism)
    return mechanism


def _check_folds(asked: Asked, mechanism: Mechanism) -> None:
    if not isinstance(mechanism, Additive) or mechanism.law.family not in _SUMS:
        raise RequestError(
            f"key 'folds': '{mechanism.name}' is not published in folds.",
            "Use 'gaussian' or 'gaussian-iid', whose sums have a law of the same kind.",
        )
    if asked.unit == "person":
        raise RequestError(
            "key 'folds': a table of persons is not published in folds.", "Leave the key out."
        )
    if asked.folds > asked.dataset.rows:
        raise RequestError("key 'folds': there are fewer rows than folds.", "Ask for fewer.")


_SUMS = ("gaussian-isotropic", "gaussian-iid")


def refuse_weaker(mechanism: Mechanism, spec: MechanismSpec) -> None:
    """Refuse noise whose exact guarantee does not fit what was asked, with both numbers.

    Raises
    ------
    GuaranteeRefused
        As said.
    """
    exact = mechanism.guarantee
    if math.isinf(exact.epsilon(spec.delta)) and spec.epsilon is None:
        raise GuaranteeRefused(
            f"{mechanism.name}: this noise has no epsilon at delta {spec.delta:g}.",
            "Ask for more noise, or a larger delta.",
        )
    if spec.epsilon is None:
        return
    delta = exact.delta(spec.epsilon)
    if delta <= spec.delta:
        return
    epsilon = exact.epsilon(spec.delta)
    instead = f"or epsilon {epsilon:.4g} at the delta asked for" if math.isfinite(epsilon) else ""
    raise GuaranteeRefused(
        f"{mechanism.name}: asked for epsilon {spec.epsilon:g} at delta {spec.delta:g}; this noise "
        f"guarantees delta {delta:.4g} at that epsilon{', ' + instead if instead else ''}.",
        "Use 'calibration: exact', which finds the noise that it takes.",
    )


def rows_facts(asked: Asked, mechanism: Mechanism, seen: Sequence[float]) -> list[RowsFacts]:
    """The number of rows to divide the matrix of each fold by; of all, where there are no folds.

    Parameters
    ----------
    asked, mechanism
        As from `calibrate`.
    seen
        Of every fold. Where the number of rows is public, so are the sizes of folds, whose law
        knows no data; they may be left out where there is one. Else the noisy count where one was
        paid for, or the noisy trace: unit rows each add one to it. Taken as one where it is less,
        so that the division is always defined.

    Raises
    ------
    ValueError
        If there are not as many as folds, or they cannot be the sizes of folds.
    """
    count = asked.dataset.count
    if asked.neighbours == "replace-one" or not isinstance(mechanism, Additive):
        sizes = list(seen) if asked.folds > 1 else [float(count)]
        whole = all(each >= 0 and each == round(each) for each in sizes)
        if len(sizes) != asked.folds or not whole or sum(sizes) != count:
            raise ValueError("the sizes of folds are not those of all rows")
        return [_rows(each, "public", 0.0) for each in sizes]
    if len(seen) != asked.folds:
        raise ValueError("every fold has a number of rows")
    sd = mechanism.sd_rows or mechanism.law.sd_diagonal * math.sqrt(len(asked.names))
    return [_rows(each, "noisy", sd) for each in seen]


def _rows(seen: float, status: Literal["public", "noisy"], sd: float) -> RowsFacts:
    return RowsFacts(value=max(1.0, seen), seen=seen, status=status, sd=sd)


def all_rows(folds: Sequence[RowsFacts]) -> RowsFacts:
    """The number of rows of all folds, from what was seen of each, so that it has no bias."""
    first = folds[0]
    return _rows(sum(each.seen for each in folds), first.status, first.sd * math.sqrt(len(folds)))


def noise_law(mechanism: Mechanism, rows: float, folds: int = 1) -> NoiseLaw:
    """The law of the released matrix: a sum over rows is divided by their number."""
    law = mechanism.law.summed(folds) if folds > 1 else mechanism.law
    return law if mechanism.publishes == "precision" else law.divided_by(rows)


def largest_trace(asked: Asked, mechanism: Mechanism) -> float:
    """A public bound on the trace of the matrix without noise.

    1 for the second moment of rows of the unit ball. At a graphical lasso solution T for S,
    tr(S T) + penalty ||T||_1 = p, so that its trace is at most p / penalty.
    """
    if mechanism.publishes == "precision":
        return mechanism.setting.p / float(asked.mechanism["penalty"])
    reach = mechanism.setting.reach
    return float(reach.longest) if reach and isinstance(asked.normalisation, Whole) else 1.0


def guarantee_facts(exact: Guarantee, delta: float) -> GuaranteeFacts:
    """A guarantee in all the field's languages."""
    rho, failure = exact.rho()
    return GuaranteeFacts(
        mu=exact.mu,
        delta0=exact.delta0,
        pure=_known(exact.pure),
        epsilon=exact.epsilon(delta),
        delta=delta,
        rho=_known(rho),
        rho_failure=failure,
        power=exact.power(0.05),
        curve={f"{epsilon:g}": exact.delta(epsilon) for epsilon in _CURVE},
    )


_CURVE = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def release_manifest(
    asked: Asked,
    *,
    release: str,
    published: str,
    seen: Sequence[float],
    versions: dict[str, str],
    sources: Mapping[str, str] | None = None,
) -> ReleaseManifest:
    """The manifest of a release; all but the keywords follows from what was asked.

    Parameters
    ----------
    asked
        Public facts.
    release, published, versions
        Id, day, and software.
    seen
        See `rows_facts`.
    sources
        Where reports were taken from, if that is what was done.
    """
    mechanism = calibrate(asked)
    if mechanism.publishes != "reports":
        sources = None
    kind = "second-moment" if sources else mechanism.publishes
    lattice = mechanism.lattice
    guarantee = guarantee_facts(mechanism.guarantee, asked.mechanism.get("delta", 0.0))
    folds = rows_facts(asked, mechanism, seen)
    rows = all_rows(folds)
    calibration = CalibrationFacts(
        constants=mechanism.plan(),
        arithmetic=mechanism.arithmetic,
        lattice=LatticeFacts(bits=lattice.bits, shrink=lattice.shrink),
    )
    noise = noise_law(mechanism, rows.value, asked.folds)
    return ReleaseManifest(
        **{name: getattr(asked, name) for name in Asked.model_fields},
        format=FORMAT if asked.budget else 5,
        kind=kind,
        release=release,
        published=published,
        rows=rows,
        fold_rows=tuple(folds if asked.folds > 1 else ()),
        calibration=calibration,
        guarantee=guarantee,
        noise=noise,
        trace=largest_trace(asked, mechanism),
        sources=dict(sources or {}),
        card=card(asked, kind, calibration, guarantee, noise),
        software=versions,
    )


def fit(bundle: ReleaseBundle, estimator: Estimator) -> tuple[EstimateManifest, Estimate]:
    """An estimate and what it says of itself.

    Raises
    ------
    RequestError
        If the settings give no finite numbers, or suit no such release.
    """
    facts = bundle.manifest
    if facts.kind == "precision":
        raise RequestError(
            f"'{facts.dataset.id}/{facts.release}' is a precision matrix already.",
            "Estimate from a release of the second moment.",
        )
    found = estimator.fit(bundle.evidence)
    if not all(np.isfinite(matrix).all() for matrix in found.matrices.values()):
        raise RequestError(
            f"{estimator.name}: these settings give no finite matrix.", "Use a larger penalty."
        )
    manifest = EstimateManifest(
        format=FORMAT,
        kind=found.kind,
        estimate=estimator.id,
        dataset=facts.dataset,
        release=facts.release,
        release_sha256=bundle.sha256,
        names=tuple(facts.names),
        estimator=estimator.model_dump(),
        tuning=dict(found.tuning),
        matrices=tuple(found.matrices),
        tables=tuple(found.tables),
        graph=found.edges is not None,
        privacy="post-processing of the release; no further privacy cost",
        software=software(),
    )
    return manifest, found
