"""The remaining budget never rises, for any clock and time zone."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import BudgetRefused
from tests.support.clocks import ZONES, clocks
from tests.support.databases import KINDS, ledger_location
from tests.support.factories import at_scale, bundle_bytes, run_release, write_request
from tests.support.ledgers import contract

YEARLY = contract(source="visits-{year}.csv", budget={"epsilon": 3.0, "delta": 1e-5, "per": "year"})
WINDOWS = {"2025": "2025", "2025-W52": "2025", "2026": "2026", "2026-07-01": "2026", "9999": "9999"}


STEPS = st.one_of(
    st.tuples(
        st.just("charge"), st.sampled_from(sorted(WINDOWS)), st.floats(0.05, 0.5).map(Guarantee)
    ),
    st.tuples(st.just("clock"), st.integers(-40_000, 40_000)),
    st.tuples(st.just("zone"), st.sampled_from(ZONES)),
    st.tuples(st.just("another process")),
)


def remaining_mu(ledger: Ledger, terms: Contract) -> dict[str, float]:
    """The remaining budget of every window that versions are charged to."""
    previews = {version: ledger.preview(terms, version) for version in WINDOWS}
    by_year = terms.budget.per == "year"
    assert [s.window for s in previews.values()] == (
        list(WINDOWS.values()) if by_year else [""] * len(WINDOWS)
    )
    return {each.window: each.left.mu for each in previews.values()}


@pytest.mark.parametrize("terms", [contract(), YEARLY], ids=["lifetime", "year"])
@pytest.mark.parametrize("kind", KINDS)
def test_remaining_budget_never_rises(kind: str, terms: Contract) -> None:
    @settings(
        max_examples=at_scale(3, 200),
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(STEPS, min_size=6, max_size=at_scale(10, 40)))
    def check(steps: list[Any]) -> None:
        with tempfile.TemporaryDirectory() as folder, clocks() as clock:
            location = ledger_location(kind, Path(folder))
            ledger = Ledger(location)
            before = remaining_mu(ledger, terms)
            for turn, (action, *arguments) in enumerate(steps):
                charged = ""
                if action == "charge":
                    version, guarantee = arguments
                    with contextlib.suppress(BudgetRefused):
                        charge = ledger.charge(terms, version, f"request {turn}", guarantee, "")
                        charged = charge.release
                elif action == "another process":
                    ledger = Ledger(location)
                else:
                    getattr(clock, "set" if action == "clock" else "zone")(*arguments)
                current = remaining_mu(ledger, terms)
                window = terms.window(arguments[0]) if charged else None
                for name, remaining in before.items():
                    # Only a charge to the window changes what remains of it, and lowers it.
                    assert (
                        current[name] < remaining if name == window else current[name] == remaining
                    )
                before = current
            assert ledger.find_inconsistencies([ledger.head()]) == []

    check()


def test_release_is_replayed_at_any_time(tmp_path: Path, any_home: Home) -> None:
    budget = {"epsilon": 1.2, "delta": 1e-6}
    request = write_request(tmp_path, budget=budget)
    with clocks() as clock:
        assert run_release(request) == "v1-r1"
        ledger, bundle = Ledger.of(any_home), any_home.archive / "toy/v1-r1/release"
        sealed_bytes, spent = bundle_bytes(bundle), ledger.statement("toy")
        for days in (-20_000, 20_000, 0):
            for zone in ZONES:
                clock.set(days)
                clock.zone(zone)
                assert run_release(request) == "v1-r1"
        for days in (-400, 400):
            clock.set(days)
            request_v2 = write_request(tmp_path, request={"version": "v2"}, budget=budget)
            with pytest.raises(BudgetRefused):
                run_release(request_v2)
    assert bundle_bytes(bundle) == sealed_bytes
    assert ledger.statement("toy") == spent
    assert ledger.charges("toy")[0].at.startswith("2026-07-01")
