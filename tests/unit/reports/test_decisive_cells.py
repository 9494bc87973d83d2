"""Verdicts on releases that are accurate, and not what they seem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.pipeline.context import Context
from gramercy.reports.reader_notes import accuracy_notes, spectrum_of, verdict_note
from gramercy.schemas import families
from tests.support.factories import run_release, write_request

ROWS = 20_000


@pytest.mark.parametrize(
    ("kind", "code"),
    [("plain", None), ("sentinel", families.TAILS.code), ("thousands", families.READING.code)],
)
@pytest.mark.slow
def test_verdict_is_not_green_over_a_misread_column(
    kind: str, code: str | None, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    fees = np.round(rng.lognormal(6.5, 0.7, ROWS), 2)
    cells = {
        "plain": fees,
        "sentinel": np.where(rng.random(ROWS) < 0.02, -666666666, fees),
        "thousands": [f"{fee:,.2f}" for fee in fees],
    }[kind]
    noise = rng.normal(0, 1, (2, ROWS)).clip(-4, 4)
    pd.DataFrame({"fee": cells, "a": noise[0], "b": noise[1]}).to_csv(
        tmp_path / "table.csv", index=False
    )
    columns = {"fee": {}, "a": {"lower": -4, "upper": 4}, "b": {"lower": -4, "upper": 4}}
    mechanism = {"name": "gaussian", "epsilon": 8, "delta": 1e-7}
    request = write_request(
        tmp_path,
        columns=columns,
        rows=ROWS,
        intercept=True,
        budget={"epsilon": 10, "delta": 1e-6},
        request={"mechanism": mechanism, "scaling": "private", "normalisation": "clip"},
    )
    bundle = read_release(Context.default().archive.release("toy", run_release(request)))
    note = verdict_note(bundle)
    assert note is not None
    assert (note.level, note.code or None) == ("warning" if code else "good", code)
    assert accuracy_notes(bundle, spectrum_of(bundle))[0] == note
