"""Publish one request while holding the lock of its data set.

The order of the steps makes this safe: the charge is durable, and anchored in the archive, before
any noise exists; noise is drawn once for a release id; a bundle appears complete, by one rename,
after its charge. If the process dies before the ledger records the bundle as sealed, the next
run marks the charge as spent. If it dies later, the next run completes the publication with the
same bytes.

On PostgreSQL the lock can be lost at any moment, so it is renewed before every step that needs it.
If it was lost, the ledger still decides: another run may have finished the sealed bundle, or marked
an open charge as spent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gramercy.archive.bundles.release_bundle import most_bytes, read_release, read_release_manifest
from gramercy.archive.store.archive import Archive
from gramercy.common.disk import check_space, disk_errors
from gramercy.common.process_lock import HeldLock
from gramercy.ledger import Charge, Ledger, spent_failure
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import BundleError, LedgerError, SpentFailure
from gramercy.schemas.facts import BudgetFacts, LedgerFacts
from gramercy.schemas.ledger_history import ChargeState

_INTERRUPTED = "interrupted when drawn"
_LEDGER_BYTES = 1 << 20  # more than the entries of a release need


@dataclass(frozen=True)
class Publication:
    """The state of a request in ledger and archive, and the steps that change it.

    Parameters
    ----------
    plan
        The planned release.
    context
        The ledger that is charged, and the archive.
    lock
        The lock of the data set, held by this run.
    """

    plan: Plan
    context: Context
    lock: HeldLock

    @property
    def ledger(self) -> Ledger:
        """Where the release is charged."""
        return self.context.ledger

    @property
    def archive(self) -> Archive:
        """Where the release is published."""
        return self.context.archive

    @property
    def dataset(self) -> str:
        """Id of the data set."""
        return self.plan.contract.id

    def bundle_path(self, charge: Charge) -> Path:
        """Path of the bundle of a charge, which may not exist yet."""
        return self.archive.release(self.dataset, charge.release)

    def published_charge(self) -> Charge | None:
        """The published charge of this request, after finishing or closing an interrupted one.

        Raises
        ------
        SpentFailure
            If the request was charged before and interrupted, and no new charge is requested.
        BundleError
            If the published bundle is missing or was replaced.
        """
        while True:
            charge, has_bundle = state = self._current_state()
            self._finish_sealed()
            # The state is still current if no other run was active in between.
            if self._current_state() == state and self.lock.renew():
                break
        if not self.ledger.sealed_charges(self.dataset):  # nothing waits to be committed
            self.archive.sweep(self.dataset)
        if charge is None:
            return None
        if charge.state.is_closed or not has_bundle:
            self._close_interrupted(charge)
            return None
        path = self.bundle_path(charge)
        if read_release(path).sha256 != charge.sha256:
            raise wordings.bundle_replaced(self.archive.display_path(path))
        return charge

    def check_ledger_is_complete(self) -> None:
        """Refuse to charge a ledger that lacks releases of the archive, or differs from the newest.

        Raises
        ------
        UntrustedLedger
            Naming the release.
        """
        published = [name for _, name in self.archive.releases(self.dataset)]
        # The ledger is read last, because a charge is entered before its bundle appears.
        charged = self.ledger.releases(self.dataset)  # read last: a charge precedes its release
        missing = [name for name in published if name not in charged]
        if missing:
            raise families.UNTRUSTED(
                "The archive has '{release}', but the ledger does not: the ledger is older than "
                "the archive.",
                "Restore the ledger that belongs to the archive: missing charges are still spent.",
                release=f"{self.dataset}/{missing[0]}",
            )
        newest = self.archive.metadata_path(self.dataset, published[-1]) if published else None
        facts = read_release_manifest(newest).ledger if newest else None
        if facts is not None:
            self.ledger.verify_anchor(facts.anchor, f"{self.dataset}/{published[-1]}")

    def check_space(self) -> None:
        """Refuse to charge if the release may not fit on a disk.

        Raises
        ------
        ArchiveError
            Naming the folder.
        """
        kind = "second-moment" if self.plan.averaging else self.plan.mechanism.publishes
        self.archive.check_space(most_bytes(self.plan.spec, kind))
        home = self.context.home.root
        with disk_errors(home):
            check_space(home, _LEDGER_BYTES)

    def charge(self, fingerprint: str, draw: Callable[[Path, str, LedgerFacts], None]) -> Charge:
        """Charge, draw, seal and commit.

        Parameters
        ----------
        fingerprint
            Fingerprint of the raw files.
        draw
            Called once, after the charge, with an empty folder, the release id and the state of
            the ledger; writes the release into the folder.

        Returns
        -------
        Charge
            The charge of the published release.

        Raises
        ------
        BudgetRefused
            If the charge does not fit the budget. Nothing was drawn.
        ArchiveError
            If the release may not fit on a disk. Nothing was charged.
        SpentFailure
            If the lock was lost, and another run has charged this request, or closed its charge.
        """
        plan, ledger, archive = self.plan, self.ledger, self.archive
        with archive.staging(self.dataset, sweep_first=True) as staged:
            self.check_ledger_is_complete()
            self.check_space()
            self.context.record_head()
            self.lock.renew()
            charge = ledger.charge(
                plan.contract,
                plan.request.version,
                plan.key,
                plan.guarantee,
                fingerprint,
                instead_of=plan.request.new_charge,
            )
            try:
                head = self.context.record_head(outside=True)
                ledger.mark(self.dataset, charge.release, ChargeState.DRAWN)
                budget = BudgetFacts.of(ledger.statement(self.dataset, charge.window).budget)
                facts = LedgerFacts(**head.model_dump(), budget=budget)
                draw(staged, charge.release, facts)
                self.lock.renew()
                digest = archive.seal(staged)
                sealed = archive.preserve_sealed(staged)  # the next run can commit it
            except BaseException:
                self._mark_spent(charge)
                raise
            try:
                self._mark_sealed(charge, digest)
                archive.commit(sealed, self.bundle_path(charge), self._confirm(charge))
                self._mark_published(charge)
            except SpentFailure:
                archive.discard(sealed)
                raise
        return charge

    def _current_state(self) -> tuple[Charge | None, bool]:
        """The charge of this request, and whether its bundle is in the archive."""
        charge = self.ledger.find_charge(self.dataset, self.plan.key)
        return charge, charge is not None and self.archive.contains(self.bundle_path(charge))

    def _finish_sealed(self) -> None:
        """Commit the sealed releases that interrupted runs of any request left, byte for byte."""
        for charge in self.ledger.sealed_charges(self.dataset):
            path = self.bundle_path(charge)
            # Another run may mark the charge as spent, or another bundle may be in its place. The
            # request of that charge then reports the problem; this request continues.
            with contextlib.suppress(SpentFailure, BundleError):
                if not self.archive.contains(path):
                    confirm = self._confirm(charge)
                    self.archive.commit_leftover(self.dataset, charge.sha256, path, confirm)
                if self.archive.contains(path) and read_release(path).sha256 == charge.sha256:
                    self._mark_published(charge)

    def _close_interrupted(self, charge: Charge) -> None:
        """Mark a charge without a bundle as spent; raise unless a new charge was requested."""
        if charge.is_published:
            raise wordings.bundle_missing(self.archive.display_path(self.bundle_path(charge)))
        if not charge.state.is_closed:
            reason = "found without a release"
            self.ledger.mark(self.dataset, charge.release, ChargeState.SPENT, reason=reason)
            self.archive.sweep(self.dataset)
        if self.plan.request.new_charge != charge.release:
            raise spent_failure(self.dataset, charge)

    def _mark_spent(self, charge: Charge) -> None:
        with contextlib.suppress(LedgerError, SpentFailure):
            self.ledger.mark(self.dataset, charge.release, ChargeState.SPENT, reason=_INTERRUPTED)

    def _mark_sealed(self, charge: Charge, digest: str) -> None:
        """Record the digest that identifies the sealed bundle of this release."""
        try:
            self.ledger.mark(self.dataset, charge.release, ChargeState.SEALED, sha256=digest)
        except LedgerError:
            # The ledger may have recorded the mark before the error. The run that holds the lock
            # could then finish the release: without the lock, do not mark the charge as spent.
            with contextlib.suppress(LedgerError, SpentFailure):
                self.lock.renew()
                self._mark_spent(charge)
            raise

    def _mark_published(self, charge: Charge) -> None:
        """Record the publication, unless another run has already done so."""
        try:
            self.ledger.mark(self.dataset, charge.release, ChargeState.PUBLISHED)
        except SpentFailure:
            now = self.ledger.charge_of(self.dataset, charge.release)
            if now is None or not now.is_published:
                raise
        self.context.record_head()

    def _confirm(self, charge: Charge) -> Callable[[], None]:
        """The `confirm` argument of `Archive.commit`: raises if the charge is spent."""

        def confirm() -> None:
            self.lock.renew()
            now = self.ledger.charge_of(self.dataset, charge.release)
            if now is None or now.state not in {ChargeState.SEALED, ChargeState.PUBLISHED}:
                raise spent_failure(self.dataset, now or charge)

        return confirm


@contextlib.contextmanager
def locked_publication(context: Context, plan: Plan) -> Iterator[Publication]:
    """Hold the lock of a data set; only one run at a time can hold it.

    Raises
    ------
    UntrustedLedger
        If the ledger is behind an anchor in the archive or the witness.
    LedgerError
        If the lock cannot be acquired within an hour.
    """
    ledger, _ = context.open_stores()
    with ledger.lock(plan.contract.id) as lock:
        yield Publication(plan, context, lock)
