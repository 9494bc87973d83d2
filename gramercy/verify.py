"""Verify a release from its own files: everything that can be recomputed is recomputed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

import estimators
import mechanisms
from archive.card import card_text, in_one_sentence
from archive.package import DESCRIPTOR
from archive.release import EstimateBundle, ReleaseBundle, read_estimate, read_release
from archive.store import Archive
from estimators import Evidence
from estimators.denoise import denoise
from ledger import Ledger
from schemas.errors import BundleError, RequestError
from schemas.lattice import Lattice

# Eigenvectors differ in their last digits between machines; what follows from them agrees to this.
_SAME = 1e-6


@dataclass(frozen=True)
class Verified:
    """What was checked of a release, in words."""

    release: str
    checks: tuple[str, ...]


def verify_release(archive: Archive, dataset: str, release: str, ledger: Ledger | None) -> Verified:
    """Recompute a release and its estimates.

    Parameters
    ----------
    archive, dataset, release
        Where it lies.
    ledger
        Where it was charged, for whoever has it.

    Raises
    ------
    BundleError
        Naming the file that is wrong.
    """
    place = archive.release(dataset, release)
    bundle = read_release(place)
    done = ["seal: every file is what was sealed", "formats: all hold the same numbers"]
    for words, check in _CHECKS:
        check(place, bundle)
        done.append(words)
    for name in archive.estimates(dataset, release):
        _check_estimate(archive.estimate(dataset, release, name), bundle)
        done.append(f"estimate {name}: recomputed from this release")
    if ledger is not None:
        _check_charge(place, bundle, ledger)
        done.append("ledger: this guarantee was charged, and this bundle published")
    return Verified(f"{dataset}/{release}", tuple(done))


def _check_names(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    if (facts.dataset.id, facts.release) != (place.parent.parent.name, place.parent.name):
        raise BundleError(f"{place / DESCRIPTOR}: describes another release than its folder's.")


def _check_resources(place: Path, bundle: ReleaseBundle) -> None:
    package = json.loads((place / DESCRIPTOR).read_text(encoding="utf-8"))
    listed = {r["path"]: (r["bytes"], r["hash"]) for r in package["resources"]}
    for path in sorted(place.iterdir()):
        if path.name in (DESCRIPTOR, "SHA256SUMS"):
            continue
        data = path.read_bytes()
        if listed.get(path.name) != (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}"):
            raise BundleError(f"{place / DESCRIPTOR}: does not describe {path.name}.")


def _check_guarantee(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    stated = facts.guarantee
    mechanism = _mechanism(place, bundle)
    exact = mechanism.guarantee
    same = (
        stated.mu == exact.mu
        and stated.delta0 == exact.delta0
        and (stated.pure if stated.pure is not None else math.inf) == exact.pure
        and stated.epsilon == exact.epsilon(stated.delta)
        and stated.delta == facts.mechanism.requested_delta
        and stated.epsilon <= facts.mechanism.requested_epsilon
        and facts.card["statement"] == in_one_sentence(stated, facts.neighbours)
    )
    if not same:
        raise BundleError(
            f"{place / DESCRIPTOR}: states another guarantee than its noise gives "
            f"(exactly mu = {exact.mu:.6g})."
        )


def _check_noise(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    lattice = _lattice(bundle)
    law = _mechanism(place, bundle).law(lattice).divided_by(facts.divisor)
    units = bundle.raw * facts.divisor * lattice.divisor
    # Beyond 2^40 units a double no longer shows whether it counts whole units.
    visible = np.abs(units) < 2.0**40
    on_lattice = bool((np.abs(units - np.rint(units))[visible] < 1e-2).all())
    if law != facts.noise or lattice.shrink != facts.mechanism.lattice.shrink or not on_lattice:
        raise BundleError(f"{place / DESCRIPTOR}: does not describe the noise of the matrix.")


def _check_denoised(place: Path, bundle: ReleaseBundle) -> None:
    again = denoise(bundle.raw, bundle.manifest.noise)
    if not np.allclose(again, bundle.denoised, rtol=0, atol=_SAME * np.abs(again).max(initial=0)):
        raise BundleError(
            f"{place / 'second_moment_denoised.npy'}: is not the denoised form of the matrix."
        )


def _check_card(place: Path, bundle: ReleaseBundle) -> None:
    package = json.loads((place / DESCRIPTOR).read_text(encoding="utf-8"))
    files = [r["path"] for r in package["resources"] if r["path"] != "CARD.md"]
    if (place / "CARD.md").read_text(encoding="utf-8") != card_text(bundle.manifest, files):
        raise BundleError(f"{place / 'CARD.md'}: does not say what {DESCRIPTOR} says.")


_CHECKS: tuple[tuple[str, Callable[[Path, ReleaseBundle], None]], ...] = (
    ("name: the folder is the release's own", _check_names),
    ("description: every file is listed with its digest", _check_resources),
    ("guarantee: recomputed from the noise, exactly as stated", _check_guarantee),
    ("noise: the stated law, on the stated lattice", _check_noise),
    ("denoised matrix: recomputed from the noisy one", _check_denoised),
    ("card: says what the description says", _check_card),
)


def _check_estimate(place: Path, release: ReleaseBundle) -> None:
    bundle: EstimateBundle = read_estimate(place)
    facts, source = bundle.manifest, release.manifest
    known = estimators.registry.get(str(facts.estimator.get("name")))
    try:
        estimator = TypeAdapter(known).validate_python(facts.estimator) if known else None
    except ValidationError:
        estimator = None
    if estimator is None or facts.release_sha256 != release.sha256 or facts.estimate != place.name:
        raise BundleError(f"{place / DESCRIPTOR}: was not estimated from this release.")
    evidence = Evidence(release.raw, release.denoised, source.noise, source.rows.value)
    again = estimator.fit(evidence)
    tolerance = _SAME * np.abs(again.matrix).max()
    if not np.allclose(again.matrix, bundle.precision, rtol=0, atol=tolerance):
        raise BundleError(f"{place / 'precision.npy'}: is not what its settings give.")


def _check_charge(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    facts = bundle.manifest
    try:
        charges = {c.release: c for c in ledger.statement(facts.dataset.id).charges}
    except RequestError:
        charges = {}
    charge = charges.get(facts.release)
    if charge is None:
        raise BundleError(f"{place}: was never charged in this home's ledger.")
    if charge.guarantee.mu != facts.guarantee.mu:
        raise BundleError(f"{place / DESCRIPTOR}: states another guarantee than was charged.")
    sealed = ledger.detail(facts.dataset.id, facts.release, "sealed")
    if charge.state != "published" or sealed != bundle.sha256:
        raise BundleError(f"{place / 'SHA256SUMS'}: is not the bundle that was published.")


def _mechanism(place: Path, bundle: ReleaseBundle) -> mechanisms.Mechanism:
    facts = bundle.manifest
    known = mechanisms.registry.get(facts.mechanism.name)
    if known is None:
        raise BundleError(
            f"{place / DESCRIPTOR}: names an unknown mechanism, '{facts.mechanism.name}'.",
            "Upgrade Gramercy.",
        )
    return known.restored(
        p=len(facts.columns),
        n=int(facts.rows.value),
        neighbours=facts.neighbours,
        constants=facts.mechanism.constants,
    )


def _lattice(bundle: ReleaseBundle) -> Lattice:
    return Lattice(len(bundle.manifest.columns), bundle.manifest.mechanism.lattice.bits)
