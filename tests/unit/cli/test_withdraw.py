"""What ``gramercy withdraw`` says that it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramercy.pipeline.context import Context
from tests.support.factories import run_command, run_json, run_release, write_request


@pytest.mark.slow
def test_withdrawal_states_that_the_charge_stays_and_what_is_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = f"toy/{run_release(write_request(tmp_path))}"
    before = Context.default().ledger.statement("toy")
    done = run_json("withdraw", release, "--reason", "wrong table", "--yes", capsys=capsys)
    assert done["withdrawn"] == "wrong table"
    assert done["charge"]["spent_epsilon"] == before.spent
    assert done["charge"]["epsilon"] == pytest.approx(before.spent, rel=0.01)
    assert done["charge"]["remaining_epsilon"] == before.remaining
    assert "--new-charge" in done["next"]
    # It is repeated, and says the same.
    code, out, _ = run_command("withdraw", release, "--yes", capsys=capsys)
    said = " ".join(out.split())
    assert code == 0
    for words in (done["shown"], done["next"], f"{before.remaining:.4g} is left"):
        assert words in said
    (listed,) = run_json("list", capsys=capsys)
    assert listed["withdrawn"] == "wrong table"


@pytest.mark.slow
def test_withdrawal_of_a_period_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = {"epsilon": 3.0, "delta": 1e-5, "per": "month"}
    request = write_request(
        tmp_path,
        request={"version": "2026-11"},
        source="table-{year}-{month}.csv",
        budget=budget,
    )
    (tmp_path / "table.csv").rename(tmp_path / "table-2026-11.csv")
    release = f"toy/{run_release(request)}"
    done = run_json("withdraw", release, "--reason", "wrong table", "--yes", capsys=capsys)
    assert done["charge"]["period"] == "2026-11"
    assert "--period 2026-11" in done["next"]
