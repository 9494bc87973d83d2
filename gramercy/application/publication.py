"""One request, while this run has the turn of its data set: answered, finished, closed, or charged.

The order is what makes it safe: the charge is durable, and told to the archive, before any noise
exists; a release id is drawn for once; a bundle appears whole, by one rename, after its charge. A
process that dies in between leaves a charge without a release, which the next run calls spent; or a
sealed bundle that only has to be put in its place, or lacks its charge's last mark, which the next
run completes, with the same bytes.

On PostgreSQL the turn can be lost at any moment, so it is checked, and taken again, before every
step that assumes it. Where it was lost, the ledger still decides: another run may have finished the
sealed bundle, or called an open charge spent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gramercy.application.context import Context
from gramercy.application.planning import Plan
from gramercy.archive.protocol import Archive
from gramercy.archive.recovery import commit_leftover
from gramercy.archive.release_bundle import read_release
from gramercy.common.process_lock import Turn
from gramercy.ledger import Charge, Ledger, unanswered
from gramercy.schemas.errors import BundleError, LedgerError, SpentFailure, UntrustedLedger

_INTERRUPTED = "interrupted when drawn"
_RESTORE = "Restore it from a copy: noise is never drawn again for a published release."


@dataclass(frozen=True)
class Publication:
    """What ledger and archive hold of a request, and what may be added to them.

    Parameters
    ----------
    plan
        What is asked for.
    ledger, archive
        Where it is charged and published.
    turn
        Of the data set.
    """

    plan: Plan
    ledger: Ledger
    archive: Archive
    turn: Turn

    @property
    def dataset(self) -> str:
        """Id of the data set."""
        return self.plan.contract.id

    def place(self, charge: Charge) -> Path:
        """Where the bundle of a charge lies, or will lie."""
        return self.archive.release(self.dataset, charge.release)

    def answer(self) -> Charge | None:
        """The published charge for this request, after finishing or closing an interrupted one.

        Raises
        ------
        SpentFailure
            If it was charged before and interrupted, and is not paid for again.
        BundleError
            If what was published is gone, or is another bundle.
        """
        while True:
            charge, in_place = found = self._found()
            self._finish()
            # What was found is still true if no other run was at work in between.
            if self._found() == found and self.turn.hold():
                break
        if charge is None:
            return None
        if charge.state in {"spent", "withdrawn"} or not in_place:
            self._close(charge)
            return None
        place = self.place(charge)
        if read_release(place).sha256 != charge.sha256:
            shown = self.archive.shown(place)
            raise BundleError(f"{shown}: is not the bundle that was published.", _RESTORE)
        return charge

    def check_history(self) -> None:
        """Refuse to charge a ledger that has forgotten releases which the archive still holds.

        Raises
        ------
        UntrustedLedger
            Naming the first of them.
        """
        held = [name for dataset, name in self.archive.releases() if dataset == self.dataset]
        known = self.ledger.releases(self.dataset)  # last: what is published was charged before
        forgotten = [name for name in held if name not in known]
        if forgotten:
            raise UntrustedLedger(
                f"The archive holds '{self.dataset}/{forgotten[0]}', and the ledger does not know "
                "it: the ledger is older than the archive.",
                "Restore the ledger that belongs to it: its charges are spent, recorded or not.",
            )

    def charge(self, fingerprint: str, draw: Callable[[Path, str], None]) -> Charge:
        """Charge, draw, seal and commit; the charge, its bundle in its place.

        Parameters
        ----------
        fingerprint
            Of the raw files.
        draw
            Writes a release of this id into this folder; called once, after the charge.

        Raises
        ------
        BudgetRefused
            If the charge does not fit the budget. Nothing was drawn.
        SpentFailure
            If the turn was lost, and another run has charged this request, or closed its charge.
        """
        plan, ledger, archive = self.plan, self.ledger, self.archive
        with archive.staging(self.dataset, alone=True) as staged:
            self.check_history()
            archive.write_anchor(ledger.head())
            self.turn.hold()
            charge = ledger.charge(
                plan.contract,
                plan.request.version,
                plan.key,
                plan.guarantee,
                fingerprint,
                instead_of=plan.request.new_charge,
            )
            try:
                archive.write_anchor(ledger.head())
                ledger.mark(self.dataset, charge.release, "drawn")
                draw(staged, charge.release)
                self.turn.hold()
                digest = archive.seal(staged)
                sealed = archive.keep(staged)  # once it is marked, the next run finishes what fails
            except BaseException:
                self._call_spent(charge)
                raise
            try:
                self._mark_sealed(charge, digest)
                archive.commit(sealed, self.place(charge), self._confirm(charge))
                self._mark_published(charge)
            except SpentFailure:
                archive.discard(sealed)
                raise
        return charge

    def _found(self) -> tuple[Charge | None, bool]:
        """The charge of this request, and whether a bundle is in its place."""
        charge = self.ledger.find(self.dataset, self.plan.key)
        return charge, charge is not None and self.archive.holds(self.place(charge))

    def _finish(self) -> None:
        """Finish, with the very same bytes, what others have sealed and left; of any request."""
        for charge in self.ledger.sealed(self.dataset):
            place = self.place(charge)
            # A charge that another run calls spent meanwhile, or another bundle in its place, is
            # for its own request to report.
            with contextlib.suppress(SpentFailure, BundleError):
                if not self.archive.holds(place):
                    confirm = self._confirm(charge)
                    commit_leftover(self.archive, self.dataset, charge.sha256, place, confirm)
                if self.archive.holds(place) and read_release(place).sha256 == charge.sha256:
                    self._mark_published(charge)

    def _close(self, charge: Charge) -> None:
        """Call a charge with nothing to show for it spent; let it pass if it is paid for again."""
        if charge.state == "published":
            shown = self.archive.shown(self.place(charge))
            raise BundleError(f"{shown}: was published, and is gone.", _RESTORE)
        if charge.state not in {"spent", "withdrawn"}:
            reason = "found without a release"
            self.ledger.mark(self.dataset, charge.release, "spent", reason=reason)
            self.archive.sweep(self.dataset)
        if self.plan.request.new_charge != charge.release:
            raise unanswered(self.dataset, charge)

    def _call_spent(self, charge: Charge) -> None:
        with contextlib.suppress(LedgerError, SpentFailure):
            self.ledger.mark(self.dataset, charge.release, "spent", reason=_INTERRUPTED)

    def _mark_sealed(self, charge: Charge, digest: str) -> None:
        """Enter the digest, so that a bundle found later is known to be this release, or is not."""
        try:
            self.ledger.mark(self.dataset, charge.release, "sealed", sha256=digest)
        except LedgerError:
            # The mark may have been made nevertheless, and then whoever has the turn may finish
            # the release. Only with the turn is it certain that no other run is about to.
            with contextlib.suppress(LedgerError, SpentFailure):
                self.turn.hold()
                self._call_spent(charge)
            raise

    def _mark_published(self, charge: Charge) -> None:
        """Enter that the bundle is in its place, unless another run that finished it has."""
        try:
            self.ledger.mark(self.dataset, charge.release, "published")
        except SpentFailure:
            now = self.ledger.charge_of(self.dataset, charge.release)
            if now is None or now.state != "published":
                raise
        self.archive.write_anchor(self.ledger.head())

    def _confirm(self, charge: Charge) -> Callable[[], None]:
        """What `Archive.commit` calls at the last moment: raises if the charge is called spent."""

        def confirm() -> None:
            self.turn.hold()
            now = self.ledger.charge_of(self.dataset, charge.release)
            if now is None or now.state not in {"sealed", "published"}:
                raise unanswered(self.dataset, now or charge)

        return confirm


@contextlib.contextmanager
def publication(context: Context, plan: Plan) -> Iterator[Publication]:
    """Have the turn of a data set; one run at a time has it.

    Raises
    ------
    UntrustedLedger
        If the ledger is older than its archive has seen it.
    LedgerError
        If the turn cannot be had within an hour.
    """
    ledger, archive = context.books()
    with ledger.alone(plan.contract.id) as turn:
        yield Publication(plan, ledger, archive, turn)
