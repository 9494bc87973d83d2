"""Faults that the model of the whole has to find, each planted by patching one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gramercy.archive.store.archive import Archive
from gramercy.ledger import Ledger, checks, journal
from gramercy.ledger.statement import Statement
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.catalogue import catalogue_pages
from gramercy.pipeline.publish import charging, internal_record
from gramercy.pipeline.publish.charging import LockedRequest
from gramercy.schemas.ledger_history import ChargeState
from tests.support.whole import commands

Patch = pytest.MonkeyPatch
FAULTS: dict[str, Callable[[Patch], None]] = {}


def _fault(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    FAULTS[plant.__name__] = plant
    return plant


@_fault
def charge_is_too_small(patch: Patch) -> None:
    charge = Ledger.charge

    def cheaper(self: Ledger, *args: Any, **named: Any) -> Any:
        contract, version, request, guarantee, fingerprint = args
        least = Guarantee(guarantee.mu / 2, guarantee.delta0, guarantee.pure)
        return charge(self, contract, version, request, least, fingerprint, **named)

    patch.setattr(Ledger, "charge", cheaper)


@_fault
def budget_is_the_registered_one(patch: Patch) -> None:
    def statement(db: Any, dataset: str, window: str) -> Statement:
        budget = journal.budget_history(db, dataset)[0].budget
        return Statement(budget, journal.total(db, dataset, window), window)

    patch.setattr(journal, "statement", statement)


@_fault
def budget_is_not_checked(patch: Patch) -> None:
    patch.setattr(checks, "check_budget", lambda *_: None)
    patch.setattr(charging, "check_budget", lambda *_: None)


@_fault
def periods_are_added_up(patch: Patch) -> None:
    total = journal.total

    def of_any_window(db: Any, dataset: str, window: str, *where: Any) -> Any:
        windows = ("", "2025", "2026")
        return max((total(db, dataset, w, *where) for w in windows), key=lambda t: t.squared_mu)

    patch.setattr(journal, "total", of_any_window)


@_fault
def noise_is_drawn_again(patch: Patch) -> None:
    """A release that was interrupted after its draw is drawn again at no charge."""
    close = LockedRequest._close_interrupted

    def again(self: LockedRequest, charge: Any) -> Any:
        return None if charge.state == "drawn" else close(self, charge)

    patch.setattr(LockedRequest, "_close_interrupted", again)
    patch.setattr(checks, "check_not_charged", lambda *_: None)

    charged = Ledger.charge

    def same(self: Ledger, contract: Any, version: str, request: str, *a: Any, **k: Any) -> Any:
        earlier = self.find_charge(contract.id, request)
        if earlier is not None and earlier.state == "drawn":
            return earlier
        return charged(self, contract, version, request, *a, **k)

    mark = Ledger.mark

    def marked(self: Ledger, dataset: str, release: str, state: ChargeState, **facts: str) -> None:
        now = self.charge_of(dataset, release)
        if not (state == "drawn" and now is not None and now.state == "drawn"):
            mark(self, dataset, release, state, **facts)

    patch.setattr(Ledger, "charge", same)
    patch.setattr(Ledger, "mark", marked)


@_fault
def noise_is_drawn_before_the_mark(patch: Patch) -> None:
    charge, draws = LockedRequest.charge, list[Any]()

    def early(self: LockedRequest, fingerprint: str, draw: Any) -> Any:
        def drawn(*args: Any) -> None:
            draws.append(args)
            draw(*args)

        return charge(self, fingerprint, drawn)

    mark = Ledger.mark

    def later(self: Ledger, dataset: str, release: str, state: ChargeState, **facts: str) -> None:
        if state == "drawn":
            return
        if state == "sealed":
            mark(self, dataset, release, ChargeState.DRAWN)
        mark(self, dataset, release, state, **facts)

    patch.setattr(LockedRequest, "charge", early)
    patch.setattr(Ledger, "mark", later)


@_fault
def published_before_it_is_sealed(patch: Patch) -> None:
    sealed = LockedRequest._mark_sealed
    commit = Archive.commit
    waiting: list[Any] = []

    def later(self: LockedRequest, charge: Any, digest: str) -> None:
        waiting.append((self, charge, digest))

    def first(self: Archive, staged: Any, place: Any, confirm: Any = None) -> None:
        commit(self, staged, place)
        while waiting:
            sealed(*waiting.pop())

    patch.setattr(LockedRequest, "_mark_sealed", later)
    patch.setattr(Archive, "commit", first)


@_fault
def sealed_releases_are_not_finished(patch: Patch) -> None:
    patch.setattr(LockedRequest, "_finish_sealed", lambda _: None)


@_fault
def publication_is_not_recorded(patch: Patch) -> None:
    patch.setattr(LockedRequest, "_mark_published", lambda *_: None)


@_fault
def replay_reads_the_table(patch: Patch) -> None:
    replay = charging.replay

    def reading(context: Any, plan: Any) -> str | None:
        commands.accumulate(plan)
        return replay(context, plan)

    patch.setattr(commands, "replay", reading)


@_fault
def refusal_depends_on_the_table(patch: Patch) -> None:
    publish = charging.publish

    def picky(context: Any, plan: Any, data: Any) -> str:
        sums = getattr(data, "sums", None)
        if sums is not None and sums.repairs.filled.any():
            raise checks.budget_problems.reason_missing()
        return publish(context, plan, data)

    patch.setattr(commands, "publish", picky)


@_fault
def record_quotes_the_table(patch: Patch) -> None:
    update = internal_record.update_record

    def quoting(home: Any, dataset: str, release: str, facts: Any) -> None:
        (home.root.parent / "home/quoted.csv").write_bytes(
            next(home.root.parent.glob(f"{dataset}*.csv"), home.ledger).read_bytes()
        )
        update(home, dataset, release, facts)

    patch.setattr(internal_record, "update_record", quoting)


@_fault
def withdrawn_release_is_listed_as_valid(patch: Patch) -> None:
    patch.setattr(catalogue_pages, "_withdrawal", lambda _: None)


@_fault
def leftovers_are_kept(patch: Patch) -> None:
    patch.setattr("gramercy.archive.store.staging.StagingArea.sweep", lambda *_: None)


@_fault
def anchors_are_not_written(patch: Patch) -> None:
    patch.setattr(Archive, "write_anchor", lambda *_: None)
