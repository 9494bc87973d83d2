"""Compare a release, its estimates and its reports with what the ledger has recorded of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.archive.bundles.withdrawal_notice import read_withdrawal
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families, wordings
from gramercy.schemas.facts import BudgetFacts
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.problem import Notice

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
    """Check that there is a notice of withdrawal if and only if the ledger records one.

    Raises
    ------
    BundleError
        If not, or if it states something else.
    """
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
