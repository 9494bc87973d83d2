"""Answer a request from the archive, or publish it once, while holding the lock of its data set.

Only this module makes anything public: charge, draw, seal, commit.

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
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from gramercy.archive.bundles.bundle_kinds import (
    most_bytes,
    read_release,
    read_release_manifest,
)
from gramercy.archive.store.archive import Archive
from gramercy.common.disk import check_space, disk_errors
from gramercy.common.process_lock import HeldLock
from gramercy.estimators.proposals import of_release
from gramercy.ledger import Charge, Ledger, check_budget, spent_failure
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.budget_preview import Decision, decide
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.step_charges import charged_series, due, series_charge
from gramercy.pipeline.publish import internal_record
from gramercy.pipeline.publish.approval import verified
from gramercy.pipeline.publish.attachments import report_id
from gramercy.pipeline.publish.drawing import (
    PrivateData,
    ReportSum,
    draw_into,
    publisher_of,
    scaled,
)
from gramercy.pipeline.publish.earlier_steps import (
    check_continues,
    rows_of_steps,
    with_earlier_steps,
)
from gramercy.pipeline.publish.private_table import PrivateCounts, PrivateSums
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import BundleError, LedgerError, SpentFailure
from gramercy.schemas.facts import BudgetFacts, LedgerFacts, group_names
from gramercy.schemas.ledger_history import ChargeState
from gramercy.tables.formats.source import needs_copy, open_source

_INTERRUPTED = "interrupted when drawn"
_LEDGER_BYTES = 1 << 20  # more than the entries of a release need


@dataclass(frozen=True)
class LockedRequest:
    """The state of a request in ledger and archive, and the steps that change it."""

    plan: Plan  # the planned release
    context: Context  # the ledger that is charged, and the archive
    lock: HeldLock  # the lock of the data set, held by this run

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
        """The published charge of this request, after finishing or closing an interrupted one."""
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
            charge = self._close_interrupted(charge)
            if decide(self.plan, charge) is Decision.REFUSE:
                raise spent_failure(self.dataset, charge)
            return None
        path = self.bundle_path(charge)
        if read_release(path).sha256 != charge.sha256:
            raise wordings.bundle_replaced(self.archive.display_path(path))
        return charge

    def check_space(self) -> None:
        """Refuse to charge if the release may not fit on a disk."""
        plan = self.plan
        publisher = publisher_of(plan.mechanism, averaging=plan.averaging)
        self.archive.check_space(most_bytes(plan.spec, publisher.publication))
        home = self.context.home.root
        with disk_errors(home):
            check_space(home, _LEDGER_BYTES)

    def charge(
        self, fingerprint: str, draw: Callable[[Path, str, LedgerFacts], None], dates: str = ""
    ) -> Charge:
        """Charge, draw, seal and commit.

        Parameters
        ----------
        fingerprint, dates
            See `PrivateSums`.
        draw
            Called once, after the charge, with an empty folder, the release id and the state of
            the ledger; writes the release into the folder.
        """
        plan, ledger, archive = self.plan, self.ledger, self.archive
        with archive.staging(self.dataset, sweep_first=True) as staged:
            check_ledger_is_complete(self.context, self.dataset)
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
                series=series_charge(plan, dates),
                approved=verified(self.context, plan),
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
                # A restored ledger can finish what was committed.
                self.context.record_head(outside=True)
                archive.commit(sealed, self.bundle_path(charge), self._confirm(charge))
                self._mark_published(charge)
            except SpentFailure:
                rmtree(sealed, ignore_errors=True)
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
                    # Its run may have ended before it did so.
                    self.context.record_head(outside=True)
                    confirm = self._confirm(charge)
                    self.archive.commit_leftover(self.dataset, charge.sha256, path, confirm)
                if self.archive.contains(path) and read_release(path).sha256 == charge.sha256:
                    self._mark_published(charge)

    def _close_interrupted(self, charge: Charge) -> Charge:
        """The charge without a bundle, marked as spent if its state was open."""
        if charge.is_published:
            raise wordings.bundle_missing(self.archive.display_path(self.bundle_path(charge)))
        if not charge.state.is_closed:
            reason = "found without a release"
            self.ledger.mark(self.dataset, charge.release, ChargeState.SPENT, reason=reason)
            self.archive.sweep(self.dataset)
            return replace(charge, state=ChargeState.SPENT, reason=reason)
        return charge

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


def check_ledger_is_complete(context: Context, dataset: str) -> None:
    """Refuse a ledger that lacks releases of the archive, or differs from the newest."""
    ledger, archive = context.ledger, context.archive
    published = {name for _, name in archive.releases(dataset)}
    # The ledger is read last, because a charge is entered before its bundle appears.
    charged = ledger.releases(dataset)
    if missing := published.difference(charged):
        raise families.UNTRUSTED(
            "The archive has '{release}', but the ledger does not: the ledger is older than "
            "the archive.",
            "Restore the ledger that belongs to the archive: missing charges are still spent.",
            release=f"{dataset}/{min(missing)}",
        )
    newest = [name for name in charged if name in published][-1:]
    for name in newest:
        place = archive.metadata_path(dataset, name)
        facts = read_release_manifest(place).ledger if place else None
        if facts is not None:
            ledger.verify_anchor(facts.anchor, f"{dataset}/{name}")


def check_ledger(context: Context) -> None:
    """Refuse a ledger that would refuse every charge of a data set, before any is due.

    Raises
    ------
    UntrustedLedger
        If it is damaged, a copy, or behind its anchors or the releases of the archive.
    """
    ledger, archive = context.open_stores()
    if (original := ledger.original_location()) is not None:
        raise wordings.ledger_copied(ledger.location, original)
    for dataset in sorted({*ledger.datasets(), *(name for name, _ in archive.releases())}):
        check_ledger_is_complete(context, dataset)


@contextlib.contextmanager
def locked_request(context: Context, plan: Plan) -> Iterator[LockedRequest]:
    """Hold the lock of a data set; only one run at a time can hold it."""
    ledger, _ = context.open_stores()
    with ledger.lock(plan.contract.id) as lock:
        yield LockedRequest(plan, context, lock)


def replay(context: Context, plan: Plan) -> str | None:
    """The id of the release that already answers this request, or None.

    The request and the ledger alone decide, before the table is read. Whether the files have
    changed since then is noted in the internal record.
    """
    with locked_request(context, plan) as run:
        statement = run.ledger.preview(plan.contract, plan.request.version)
        charge = run.published_charge()
        if charge is None:
            # Refuse now what would be refused after reading the table.
            check_ledger_is_complete(context, run.dataset)
            check_budget(run.dataset, statement, due(run.ledger, plan))
            check_continues(context, plan, charged_series(run.ledger, plan))
            run.check_space()
            return None
    changed: bool | None = None  # not known of a table that is copied, or that grows
    if not needs_copy(plan.contract.source) and plan.spec.cumulative is None:
        changed = True  # also if it is missing or unreadable
        with contextlib.suppress(Exception):
            changed = open_source(plan.contract.source).fingerprint() != charge.fingerprint
    facts = {"table_changed_since": changed}
    internal_record.update_record(context.home, plan.contract.id, charge.release, facts)
    return charge.release


def publish(context: Context, plan: Plan, data: PrivateData) -> str:
    """Publish the planned release, once; returns the release id."""
    summed_last: list[PrivateData] = []

    def draw(folder: Path, release: str, ledger: LedgerFacts) -> None:
        stated = replace(whole, spec=whole.spec.model_copy(update={"ledger": ledger}))
        summed_last.append(draw_into(folder, stated, data, release))

    sampler.self_test()  # fails before the charge
    with locked_request(context, plan) as run:
        if published := run.published_charge():
            return published.release
        dates = data.dates if isinstance(data, PrivateSums) else ""
        whole = with_earlier_steps(context, plan, data)
        try:
            charge = run.charge(data.fingerprint, draw, dates)
        except SpentFailure:
            # The lock was lost, and another run has charged this request or closed its charge.
            if published := run.published_charge():
                return published.release
            raise
    for summed in summed_last:
        if isinstance(summed, ReportSum):  # nothing private was read
            continue
        facts = _table_facts(context, plan, charge, summed)
        internal_record.update_record(context.home, plan.contract.id, charge.release, facts)
    return charge.release


def _table_facts(
    context: Context, plan: Plan, charge: Charge, data: PrivateSums | PrivateCounts
) -> dict[str, Any]:
    """For the steward: what was repaired, and how far the release is from the exact matrix."""
    names = plan.matrix_contract.names
    if isinstance(data, PrivateCounts):
        counts = data.counts
        # A dropped malformed line counts as a row without values, and a person as one row.
        missing = [int(each[-1]) - counts.malformed for each in counts.counts]
        return {
            "rows": counts.rows_read,
            "malformed_rows": counts.malformed,
            **(
                {"filled_cells": dict(zip(names, missing, strict=True))}
                if plan.contract.persons is None
                else {"persons": counts.units, "persons_declared": plan.contract.persons}
            ),
            "table_changed_since": False,
        }
    bundle = read_release(context.archive.release(plan.contract.id, charge.release))
    sums = data.sums
    facts: dict[str, Any] = {"rows": sums.rows_read}
    if plan.spec.by is not None:  # the exact number of rows or persons of every group
        parts = np.array([part.rows for part in sums.part_sums]).reshape(-1, plan.spec.slices)
        sizes = parts.sum(axis=1).tolist()
        facts["groups"] = dict(zip(group_names(plan.spec.by), sizes, strict=True))
    facts |= rows_of_steps(context, plan, sums)
    if plan.contract.persons is not None:
        facts["persons"] = sums.rows
        facts["persons_declared"] = plan.contract.persons
        facts["rows_without_person"] = sums.rows_without_person
    facts["malformed_rows"] = sums.malformed
    facts["filled_cells"] = dict(zip(names, sums.repairs.filled.tolist(), strict=True))
    facts["clamped_cells"] = dict(zip(names, sums.repairs.clamped.tolist(), strict=True))
    facts["table_changed_since"] = False
    if bundle.manifest.publication.is_moment and sums.gram is not None:
        public = plan.contract.neighbours.count_is_public
        count = bundle.manifest.public_count if public else sums.rows
        drawn = sums.gram.astype(np.float64) / plan.mechanism.lattice.divisor / max(1, count)
        truth = scaled(bundle.manifest, bundle.whitening, drawn)
        facts["proposals"] = [each.line for each in of_release(bundle.evidence)]
        facts["truth"] = internal_record.error_against_truth(bundle, truth)
    return facts


def finished_release(context: Context, plan: Plan) -> str | None:
    """The release that answers a request, if its estimates and its report were sealed as well.

    Then there is nothing to run, and no server of Prefect is needed.

    Returns
    -------
    str or None
        Its release id; None if anything is left to do. Averages of reports are always compared
        with their sources: None.
    """
    if plan.averaging or context.existing_ledger is None:
        return None
    archive, dataset = context.archive, plan.contract.id
    charge = context.ledger.find_charge(dataset, plan.key)
    if charge is None or decide(plan, charge) is not Decision.ANSWER:
        return None
    estimates = {each.id for each in plan.request.estimates}
    report = archive.report(dataset, charge.release, report_id(sorted(estimates)))
    if not archive.contains(report) or estimates - {*archive.estimates(dataset, charge.release)}:
        return None
    return replay(context, plan)
