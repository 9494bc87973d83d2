"""Compare a release, its estimates and its reports with what the ledger has recorded of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gramercy.archive.archive import Archive
from gramercy.archive.bundle import SUMS, file_digest
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.archive.withdrawal_notice import read_withdrawal
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.facts import BudgetFacts
from gramercy.schemas.problem import Notice
from gramercy.schemas.problems import verification as problems
from gramercy.schemas.problems.publication import bundle_replaced

if TYPE_CHECKING:
    from gramercy.ledger import Charge, Ledger


def check_guarantee(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    """Check that a release states the guarantee that was charged for it, if any was.

    Raises
    ------
    BundleError
        With both guarantees.
    """
    facts = bundle.manifest
    charge, stated = ledger.charge_of(facts.dataset.id, facts.release), facts.guarantee
    pure = math.inf if stated.pure_epsilon is None else stated.pure_epsilon
    if charge is not None and charge.guarantee != Guarantee(stated.mu, stated.delta0, pure):
        charged = charge.guarantee
        raise problems.guarantee_not_charged(
            str(place / DESCRIPTOR),
            stated.epsilon,
            stated.delta,
            stated.mu,
            charged.epsilon(stated.delta),
            charged.mu,
        )


def check_charge(place: Path, bundle: ReleaseBundle, ledger: Ledger) -> None:
    """Check that a release is the one that was charged, under the ledger that it states.

    Raises
    ------
    BundleError
        If it was never charged, or replaced.
    UntrustedLedger
        If the ledger differs from the head that the release states.
    """
    facts = bundle.manifest
    charge = ledger.charge_of(facts.dataset.id, facts.release)
    if charge is None:
        raise problems.never_charged(str(place))
    if charge.state not in {"published", "withdrawn"} or charge.sha256 != bundle.sha256:
        raise bundle_replaced(str(place / SUMS))
    if facts.ledger is not None:
        ledger.verify_anchor(facts.ledger.anchor, f"{facts.dataset.id}/{facts.release}")
        budget = ledger.budget_at(facts.dataset.id, facts.ledger.seq)
        if budget is None or BudgetFacts.of(budget) != facts.ledger.budget:
            raise problems.budget_not_in_use(str(place / DESCRIPTOR))


def check_withdrawal(archive: Archive, dataset: str, charge: Charge) -> None:
    """Check that there is a notice of withdrawal if and only if the ledger records one.

    Raises
    ------
    BundleError
        If not, or if it states something else.
    """
    place = archive.withdrawal(dataset, charge.release)
    if charge.state != "withdrawn":
        if archive.contains(place):
            raise problems.bundle_unexpected(archive.display_path(place), charge.state)
        return
    if not archive.contains(place):
        raise problems.withdrawal_missing(archive.display_path(place))
    notice = read_withdrawal(place).manifest
    if (notice.release_sha256, notice.reason) != (charge.sha256, charge.reason):
        raise problems.withdrawal_differs(archive.display_path(place))


def check_recorded(
    archive: Archive, dataset: str, release: str, ledger: Ledger
) -> Iterator[Notice]:
    """Check that the archive has the notice, estimates and reports that the ledger has recorded.

    Yields a notice if it has other estimates or reports as well.

    Raises
    ------
    BundleError
        Naming the one that is missing, or that is not the one recorded.
    """
    charge = ledger.charge_of(dataset, release)
    if charge is not None:
        check_withdrawal(archive, dataset, charge)
    recorded = ledger.derived(dataset, release)
    for (kind, name), sha256 in sorted(recorded.items()):
        place = (archive.estimate if kind == "estimate" else archive.report)(dataset, release, name)
        if not archive.contains(place):
            raise problems.recorded_bundle_missing(archive.display_path(place))
        if file_digest(place / SUMS) != sha256:
            raise problems.recorded_bundle_replaced(archive.display_path(place / SUMS))
    present = [("estimate", name) for name in archive.estimates(dataset, release)]
    present += [("report", name) for name in archive.reports(dataset, release)]
    if others := [name for kind, name in present if (kind, name) not in recorded]:
        yield problems.bundles_not_recorded(f"{dataset}/{release}", tuple(others))
