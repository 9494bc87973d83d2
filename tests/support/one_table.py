"""One table, for tests that its integers are the same from every kind of source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gramercy.common.lattice import Lattice
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Unit
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums import streaming
from tests.support.factories import contract_facts

WIDE = {"lower": -100.0, "upper": 100.0}
COLUMNS: dict[str, Any] = {
    "x": WIDE,
    "n": {"lower": -1e18, "upper": 1e18},
    "price": WIDE,
    "flag": {"levels": [0, 1]},
    "ward": {"levels": ["A", "B", "Ä"]},
}


def frame(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "patient": rng.integers(0, rows // 2, rows),
            "x": rng.normal(size=rows) * 30,
            "n": rng.integers(-(2**62), 2**62, rows),
            "price": rng.integers(-(10**7), 10**7, rows) / 10**4,
            "flag": rng.random(rows) < 0.5,
            "ward": rng.choice(["A", "B", "Ä", "C"], rows),
            "day": "2026-11-23",
        }
    )


def contract(source: Any, rows: int = 4, **facts: Any) -> Contract:
    declared = {"source": source, "rows": rows, "columns": COLUMNS} | facts
    return Contract.model_validate(contract_facts() | declared)


def gram(declared: Contract) -> Any:
    columns = sum(len(getattr(each, "levels", [0])) for each in declared.columns.values())
    lattice = Lattice.fitting(columns + declared.intercept, declared.count, 1.0)
    return streaming.accumulate(open_source(declared.source), declared, Unit(), lattice).gram
