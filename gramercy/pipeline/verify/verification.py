"""Verify a release from its own files: everything that follows from other facts is recomputed.

What does not follow from other facts (the noisy matrix, a title, the public constants of a column)
is protected by the seal, and by the ledger if it is available.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_release
from gramercy.archive.listing.contents import Contents
from gramercy.archive.seal.bundle import check, signer
from gramercy.archive.seal.signing import key_id
from gramercy.archive.store.archive import Archive
from gramercy.common.similar_names import most_similar_first
from gramercy.pipeline.verify.listing_checks import check_listed
from gramercy.pipeline.verify.recomputation import (
    check_belongs,
    check_estimate,
    check_report,
    release_checks,
    source_checks,
)
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.manifest import EstimateManifest, ReportManifest
from gramercy.schemas.problem import Notice

if TYPE_CHECKING:
    from gramercy.ledger import Ledger
import math
from typing import TYPE_CHECKING

from gramercy.archive.bundles.descriptions import read_withdrawal
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.facts import BudgetFacts

if TYPE_CHECKING:
    from gramercy.ledger import Charge, Ledger
from gramercy.common.extras import INSTALL_PUBLISH
from gramercy.pipeline.context import Context
from gramercy.schemas.errors import MissingPackages

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class VerificationResult:
    """The result of a successful verification."""

    release: str  # `<dataset>/<release>`
    checks: tuple[str, ...]  # what was verified, in words
    unchecked: tuple[Notice, ...]  # what could not be verified


def list_releases(archive: Archive, ledger: Ledger | None) -> list[tuple[str, str]]:
    """(data set, release) of every release in the archive, its listing, or the ledger."""
    listed = Contents(archive).entries()
    return sorted({*archive.releases(), *listed, *(ledger.published() if ledger else ())})


def select_releases(
    archive: Archive, ledger: Ledger | None, names: list[str]
) -> list[tuple[str, str]]:
    """(data set, release) of the named releases and data sets; of all, if `names` is empty."""
    releases = list_releases(archive, ledger)
    chosen = releases
    if names:
        chosen = [pair for n in names for pair in releases if n in (pair[0], "/".join(pair))]
        known_names = {n for pair in releases for n in (pair[0], "/".join(pair))}
        if unknown := [n for n in names if n not in known_names]:
            known = most_similar_first(unknown[0], sorted(known_names))
            raise wordings.unknown_name(archive.location, unknown[0], known)
    if not chosen:
        raise wordings.no_release(archive.location)
    return list(dict.fromkeys(chosen))


def verify_release(
    archive: Archive,
    dataset: str,
    release: str,
    ledger: Ledger | None,
    *,
    recompute_derived: bool = True,
) -> VerificationResult:
    """Verify a release and its estimates by recomputing them, and what its reports state.

    Parameters
    ----------
    recompute_derived
        Whether to recompute estimates, and verify reports; otherwise only their seals are.
    """
    with archive.rewrite_paths_in_errors():
        return _verify(archive, dataset, release, ledger, recompute_derived)


def _verify(
    archive: Archive, dataset: str, release: str, ledger: Ledger | None, recompute_derived: bool
) -> VerificationResult:
    place = archive.release(dataset, release)
    if not archive.contains(place):
        raise wordings.bundle_missing(archive.display_path(place))
    bundle = _run_check(place, read_release, place)
    archive.verify_signer(place)
    trust = ", which is trusted" if archive.trusted else "; no trusted key was given"
    checks = [
        "seal: the checksums of all files match",
        f"signature: by the key {key_id(signer(place))}{trust}",
    ]
    if bundle.manifest.publication.has_matrix:
        checks.append("formats: all files of a matrix have the same numbers")
    unchecked: list[Notice] = []
    if ledger is not None:  # first: what an auditor must know before other contradictions
        _run_check(place, check_guarantee, place, bundle, ledger)
    for words, check_release in release_checks(bundle.manifest).items():
        _run_check(place, check_release, place, bundle)
        checks.append(words)
    for check_sources in source_checks(bundle.manifest):
        words, notice = _run_check(place, check_sources, archive, place, bundle)
        checks += [words] if words else []
        unchecked += [notice] if notice else []
    for words, notice in _check_derived(archive, dataset, release, bundle, recompute_derived):
        checks.append(words)
        unchecked += [notice] if notice else []
    if ledger is None:
        listed = check_listed(archive, dataset, release)
        checks += [listed] if listed else []
    else:  # which knows more than the listing
        _run_check(place, check_charge, place, bundle, ledger)
        unchecked += _run_check(place, check_recorded, archive, dataset, release, ledger)
        checks.append("ledger: this guarantee was charged, and these bundles published")
    return VerificationResult(f"{dataset}/{release}", tuple(checks), tuple(unchecked))


def _check_derived(
    archive: Archive, dataset: str, release: str, bundle: ReleaseBundle, recompute: bool
) -> Iterator[tuple[str, Notice | None]]:
    """Check estimates and reports; yields what was checked of each, and what could not be."""
    for kind, names, place_of, check_numbers, manifest in (
        ("estimate", archive.estimates, archive.estimate, check_estimate, EstimateManifest),
        ("report", archive.reports, archive.report, check_report, ReportManifest),
    ):
        for name in names(dataset, release):
            path = place_of(dataset, release, name)
            _check_seal(archive, path)
            _run_check(path, check_belongs, path, bundle, manifest)
            if recompute:
                words, notice = _run_check(path, check_numbers, archive, path, bundle)
                yield f"{kind} {name}: {words}", notice


def _check_seal(archive: Archive, place: Path) -> None:
    check(place)
    archive.verify_signer(place)


def _run_check(place: Path, check: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a check; any unexpected exception is reported as a forged bundle."""
    reason = ""
    try:
        return check(*args, **kwargs)
    except GramercyError:
        raise
    except Exception as caught:
        reason = type(caught).__name__
    raise families.CONTRADICTION(
        "{path} describes an impossible release ({reason}).",
        "Ask the curator for the bundle that was published.",
        path=str(place / DESCRIPTOR),
        reason=reason,
    )


def check_guarantee(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    """Check that a release states the guarantee that was charged for it, if any was."""
    facts = bundle.manifest
    charge, stated = ledger.charge_of(facts.dataset.id, facts.release), facts.guarantee
    pure = math.inf if stated.pure_epsilon is None else stated.pure_epsilon
    if charge is not None and charge.guarantee != Guarantee(stated.mu, stated.delta0, pure):
        charged = charge.guarantee
        raise families.CHARGE(
            "{path} states epsilon={epsilon:.4g} at delta={delta:g} (mu={mu:.4g}), but the ledger "
            "has charged epsilon={charged_epsilon:.4g} (mu={charged_mu:.4g}).",
            "Ask the curator for the bundle that was published.",
            path=str(place / DESCRIPTOR),
            epsilon=stated.epsilon,
            delta=stated.delta,
            mu=stated.mu,
            charged_epsilon=charged.epsilon(stated.delta),
            charged_mu=charged.mu,
        )


def check_charge(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    """Check that a release is the one that was charged, under the ledger that it states."""
    facts = bundle.manifest
    charge = ledger.charge_of(facts.dataset.id, facts.release)
    if charge is None:
        raise families.CHARGE(
            "{path} was never charged in this ledger.",
            "If it was charged elsewhere, verify it there, or with '--archive', without the "
            "ledger.",
            path=str(place),
        )
    if not charge.state.was_published or charge.sha256 != bundle.sha256:
        raise wordings.bundle_replaced(str(place / SUMS))
    if facts.ledger is not None:
        ledger.verify_anchor(facts.ledger.anchor, f"{facts.dataset.id}/{facts.release}")
        budget = ledger.budget_at(facts.dataset.id, facts.ledger.seq)
        if budget is None or BudgetFacts.of(budget) != facts.ledger.budget:
            raise families.CONTRADICTION(
                "{path} states a budget that was not in use when the release was charged.",
                "Ask the curator for the bundle that was published.",
                path=str(place / DESCRIPTOR),
            )


def check_withdrawal(archive: Archive, dataset: str, charge: Charge) -> None:
    """Check that there is a notice of withdrawal if and only if the ledger records one."""
    place = archive.withdrawal(dataset, charge.release)
    if charge.state is not ChargeState.WITHDRAWN:
        if archive.contains(place):
            raise wordings.bundle_unexpected(archive.display_path(place), charge.state)
        return
    if not archive.contains(place):
        raise families.STATE(
            "{path} is missing, but in the ledger the release is withdrawn.",
            "Run 'gramercy withdraw' again: it writes the notice.",
            path=archive.display_path(place),
        )
    notice = read_withdrawal(place).manifest
    if (notice.release_sha256, notice.reason) != (charge.sha256, charge.reason):
        raise families.STATE(
            "{path} differs from the withdrawal in the ledger.",
            "Restore the notice from a copy.",
            path=archive.display_path(place),
        )


def check_recorded(
    archive: Archive, dataset: str, release: str, ledger: Ledger
) -> Iterator[Notice]:
    """Check that the archive has the notice, estimates and reports that the ledger has recorded.

    Yields a notice if it has other estimates or reports as well.
    """
    charge = ledger.charge_of(dataset, release)
    if charge is not None:
        check_withdrawal(archive, dataset, charge)
    recorded = ledger.derived(dataset, release)
    for (kind, name), sha256 in sorted(recorded.items()):
        place = (archive.estimate if kind == "estimate" else archive.report)(dataset, release, name)
        if not archive.contains(place):
            raise families.REPLACED(
                "{path} is missing, but the ledger has recorded it.",
                "Restore it from a copy, or make it again: 'gramercy estimate' makes estimates "
                "and reports.",
                path=archive.display_path(place),
            )
        if file_digest(place / SUMS) != sha256:
            raise families.REPLACED(
                "{path} is not the bundle that the ledger has recorded.",
                "Restore it from a copy.",
                path=archive.display_path(place / SUMS),
            )
    present = [("estimate", name) for name in archive.estimates(dataset, release)]
    present += [("report", name) for name in archive.reports(dataset, release)]
    if others := [name for kind, name in present if (kind, name) not in recorded]:
        yield families.NOT_RECORDED(
            "{release}: the ledger has no record of {names}.",
            "Repeat the command that made them: it records them.",
            release=f"{dataset}/{release}",
            names=tuple(others),
        )


def readable_ledger(context: Context) -> tuple[Ledger | None, str]:
    """The ledger of the home, or None; and the command that installs packages that are missing."""
    try:
        return context.existing_ledger, ""
    except MissingPackages:
        return None, INSTALL_PUBLISH
