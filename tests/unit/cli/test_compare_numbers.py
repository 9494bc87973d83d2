"""``gramercy compare`` of releases whose matrices have different constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gramercy.schemas import families
from tests.support.factories import run_command, run_json, run_release, write_request, write_table


def publish(folder: Path, version: str, **request: Any) -> str:
    """A release of 3,000 rows with hardly any noise."""
    facts = {"rows": 3000, "intercept": True, "budget": {"epsilon": 1000.0, "delta": 1e-5}}
    keys = {
        "version": version,
        "mechanism": {"name": "gaussian", "epsilon": 200.0, "delta": 1e-6},
        "normalisation": {"kind": "clip", "radius": 2.0},
    }
    return f"toy/{run_release(write_request(folder, request=keys | request, **facts))}"


@pytest.mark.slow
def test_numbers_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.read_csv(write_table(tmp_path / "table.csv", rows=3000))
    earlier = publish(tmp_path, "v1")
    table.assign(c1=table["c1"] + 1.0).to_csv(tmp_path / "table.csv", index=False)
    later = publish(tmp_path, "v2", normalisation={"kind": "clip", "radius": 3.0})
    facts = run_json("compare", later, earlier, capsys=capsys)  # in either order
    assert (facts["earlier"], facts["later"], facts["numbers"]) == (earlier, later, 9)
    surest = facts["differing"][0]
    assert (surest["kind"], surest["column"], surest["other"]) == ("mean", "c1", "")
    assert surest["difference"] == pytest.approx(1.0, abs=0.3)
    code, out, _ = run_command("compare", earlier, later, capsys=capsys)
    assert code == 0
    assert f"{len(facts['differing'])} of 9 differ" in out
    page = tmp_path / "change.html"
    code, _, err = run_command("compare", earlier, later, "--page", page, capsys=capsys)
    assert code == 2
    assert families.COMPARISON.code in err
    assert not page.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_of_second",
    [{"normalisation": "unit"}, {"mechanism": {"name": "rows", "epsilon": 200.0, "delta": 1e-6}}],
    ids=["unit rows", "noisy rows"],
)
def test_release_without_means_is_not_compared(
    tmp_path: Path, request_of_second: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(tmp_path / "table.csv", rows=3000)
    names = publish(tmp_path, "v1"), publish(tmp_path, "v2", **request_of_second)
    code, _, err = run_command("compare", *names, capsys=capsys)
    assert code == 2
    assert families.COMPARISON.code in err
