"""What a release says of itself, worked out from public facts: for writer and verifier alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from gramercy.application.calibration import calibrate, guarantee_facts, noise_law
from gramercy.archive.card import card
from gramercy.mechanisms.additive import Additive
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.schemas.facts import CalibrationFacts, LatticeFacts, RowsFacts
from gramercy.schemas.manifest import FORMAT, Asked, ReleaseManifest
from gramercy.schemas.normalisation import Whole


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


def largest_trace(asked: Asked, mechanism: Mechanism) -> float:
    """A public bound on the trace of the matrix without noise.

    1 for the second moment of rows of the unit ball. At a graphical lasso solution T for S,
    tr(S T) + penalty ||T||_1 = p, so that its trace is at most p / penalty.
    """
    if mechanism.publishes == "precision":
        return mechanism.setting.p / float(asked.mechanism["penalty"])
    reach = mechanism.setting.reach
    return float(reach.longest) if reach and isinstance(asked.normalisation, Whole) else 1.0
