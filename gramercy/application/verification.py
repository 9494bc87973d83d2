"""Verify a release from its own files: everything that follows from other facts is worked out anew.

What follows from nothing else (the numbers of the noisy matrix, a title, the public constants of a
column) is held by the seal, and by the ledger for whoever has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from gramercy.application.affected import by_place
from gramercy.application.context import Context
from gramercy.application.derived_checks import check_belongs, check_estimate, check_report
from gramercy.application.release_checks import RELEASE_CHECKS, check_average
from gramercy.archive.bundle import SUMS, check, signer
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import ReleaseBundle, read_release
from gramercy.archive.signature import key_id
from gramercy.common.extras import INSTALL_PUBLISH
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.errors import BundleError, GramercyError, MissingPackages, UnknownRelease
from gramercy.schemas.manifest import FORMAT, EstimateManifest, ReportManifest

if TYPE_CHECKING:
    from gramercy.ledger import Ledger

Facts = ParamSpec("Facts")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Verified:
    """What was checked of a release, and what could not be, in words."""

    release: str
    checks: tuple[str, ...]
    unchecked: tuple[str, ...]


def readable_ledger(context: Context) -> tuple[Ledger | None, str]:
    """The ledger of the home, if it has one; and what it takes to read it, if it cannot be."""
    try:
        return context.known_ledger, ""
    except MissingPackages:
        return None, INSTALL_PUBLISH


def known_releases(archive: Archive, ledger: Ledger | None) -> list[tuple[str, str]]:
    """(data set, release) of what lies in the archive, and of what the ledger says should."""
    known = set(archive.releases())
    for dataset in ledger.datasets() if ledger else ():
        charges = ledger.charges(dataset) if ledger else ()
        states = {"published", "withdrawn"}
        known |= {(dataset, each.release) for each in charges if each.state in states}
    return sorted(known)


def to_verify(archive: Archive, ledger: Ledger | None, names: list[str]) -> list[tuple[str, str]]:
    """(data set, release) of what is to be verified: what lies there, and what should.

    Raises
    ------
    UnknownRelease
        If there is nothing of such a name.
    """
    known = known_releases(archive, ledger)
    chosen = known
    if names:
        chosen = [pair for n in names for pair in known if n in (pair[0], "/".join(pair))]
        known_names = {n for pair in known for n in (pair[0], "/".join(pair))}
        if unknown := [n for n in names if n not in known_names]:
            raise UnknownRelease(
                f"{archive.root}: holds no release '{unknown[0]}'.", "See 'gramercy list'."
            )
    if not chosen:
        raise UnknownRelease(f"{archive.root}: holds no release.", "Publish one first.")
    return list(dict.fromkeys(chosen))


def verify_release(
    archive: Archive, dataset: str, release: str, ledger: Ledger | None, *, beside: bool = True
) -> Verified:
    """Recompute a release and its estimates.

    Parameters
    ----------
    archive, dataset, release
        Where it lies.
    ledger
        Where it was charged, for whoever has it.
    beside
        Whether to recompute estimates and reports; else their seals are verified alone.

    Raises
    ------
    BundleError
        Naming the file that is wrong.
    """
    with archive.naming():
        return _verify(archive, dataset, release, ledger, beside)


def _verify(
    archive: Archive, dataset: str, release: str, ledger: Ledger | None, beside: bool
) -> Verified:
    place = archive.release(dataset, release)
    if not archive.holds(place):
        raise BundleError(
            f"{archive.shown(place)}: was published, and is gone.",
            "Restore it from a copy: noise is never drawn again for a published release.",
        )
    bundle = _held(place, read_release, place)
    archive.hold_to_key(place)
    done = [
        "seal: every file is what was sealed",
        f"signature: by the key {key_id(signer(place))}, {_whose(archive)}",
        "formats: all hold the same numbers",
    ]
    left: list[str] = []
    for words, holds in RELEASE_CHECKS.items():
        _held(place, holds, place, bundle)
        done.append(words)
    if bundle.manifest.format < FORMAT:
        left.append("card: its words are of an older format, and were not compared")
    if by_place(bundle.manifest):
        left.append(
            "guarantee: does not hold if a row's values decide in which file of the source it is "
            "(docs/security-history.md, 1)"
        )
    if bundle.manifest.sources:
        told, doubt = _held(place, check_average, archive, place, bundle)
        done += [told] if told else []
        left += [doubt] if doubt else []
    for name in archive.estimates(dataset, release):
        at = archive.estimate(dataset, release, name)
        _seal(archive, at)
        _held(at, check_belongs, at, bundle, EstimateManifest)
        if beside:
            _held(at, check_estimate, at, bundle)
            done.append(f"estimate {name}: recomputed from this release")
    for name in archive.reports(dataset, release):
        at = archive.report(dataset, release, name)
        _seal(archive, at)
        _held(at, check_belongs, at, bundle, ReportManifest)
        if beside:
            told, doubt = _held(at, check_report, archive, at, bundle)
            done.append(f"report {name}: {told}")
            left += [f"report {name}: {doubt}"] if doubt else []
    if ledger is not None:
        _check_charge(place, bundle, ledger)
        done.append("ledger: this guarantee was charged, and this bundle published")
    return Verified(f"{dataset}/{release}", tuple(done), tuple(left))


def _seal(archive: Archive, place: Path) -> None:
    check(place)
    archive.hold_to_key(place)


def _whose(archive: Archive) -> str:
    return "which is trusted" if archive.trusted else "whose owner nobody has named"


def _held(
    place: Path, check: Callable[Facts, Found], *args: Facts.args, **kwargs: Facts.kwargs
) -> Found:
    """Run a check; whatever a forged bundle makes it stumble over is the bundle's fault."""
    stumbled = ""
    try:
        return check(*args, **kwargs)
    except GramercyError:
        raise
    except Exception as caught:
        stumbled = type(caught).__name__
    raise BundleError(f"{place / DESCRIPTOR}: describes no release that can be ({stumbled}).")


def _check_charge(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    facts = bundle.manifest
    dataset = facts.dataset.id
    charge = ledger.charge_of(dataset, facts.release)
    if charge is None:
        raise BundleError(f"{place}: was never charged in this home's ledger.")
    stated = facts.guarantee
    pure = math.inf if stated.pure is None else stated.pure
    if charge.guarantee != Guarantee(stated.mu, stated.delta0, pure):
        raise BundleError(f"{place / DESCRIPTOR}: states another guarantee than was charged.")
    if charge.state not in {"published", "withdrawn"} or charge.sha256 != bundle.sha256:
        raise BundleError(f"{place / SUMS}: is not the bundle that was published.")
