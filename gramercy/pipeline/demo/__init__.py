"""The demo: a made-up table of visits to a clinic, as if the clinic published it.

It is large enough that privacy costs little accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow.csv import write_csv

from gramercy.common.home import Home
from gramercy.estimators.noise.draws import stream

if TYPE_CHECKING:
    import pandas as pd


FORMULA = "pressure ~ age + bmi + smoker"  # a regression in the demo's request


def write_demo_files(home: Home) -> Path:
    """Write the demo's table, contract and request into the home; returns the request's path."""
    folder = home.root / "demo"
    request, contract = folder / "request.yaml", home.contracts / "outpatients.yaml"
    for path, name in ((request, "request.yaml"), (contract, "contract.yaml")):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():  # keep a file that the user may have edited
            path.write_text(files(__name__).joinpath(name).read_text())
    table = folder / "visits.csv"
    if not table.exists():
        write_csv(pyarrow.Table.from_pandas(visits(), preserve_index=False), table)
    return request


ROWS = 100_000
# What blood pressure depends on, in mmHg per unit of the column: a regression should find it.
PRESSURE: Mapping[str, float] = MappingProxyType(
    {"Intercept": 80.0, "age": 0.4, "bmi": 0.9, "smoker=yes": 6.0}
)
_WARDS = ("general", "cardiology", "surgery")
_SHARE_MISSING = {"glucose": 0.06, "cholesterol": 0.1, "exercise": 0.15}

Array = NDArray[np.float64]


def visits(rows: int = ROWS) -> pd.DataFrame:
    """Draw the table from a public seed: equal calls give equal tables.

    Returns
    -------
    DataFrame
        Numbers and levels; some cells are missing, independently of everything else.
    """
    import pandas as pd

    source = stream()

    def normal(sd: float) -> Array:
        return source.normal(0.0, sd, rows)

    age = np.clip(52 + normal(16), 18, 100)
    female = source.uniform(size=rows) < 0.54
    smoker = source.uniform(size=rows) < 0.48 - 0.002 * age
    exercise = np.exp(4.6 - 0.006 * (age - 52) - 0.4 * smoker + normal(0.55))
    bmi = 26.5 + 0.04 * (age - 52) - 1.6 * (np.log(exercise) - 4.6) + normal(3.6)
    pressure = (
        PRESSURE["Intercept"]
        + PRESSURE["age"] * age
        + PRESSURE["bmi"] * bmi
        + PRESSURE["smoker=yes"] * smoker
        + normal(11)
    )
    pulse = 74 - 2.2 * (np.log(exercise) - 4.6) + 3 * smoker + 3 * female + normal(8)
    glucose = np.exp(1.66 + 0.018 * (bmi - 26.5) + 0.002 * (age - 52) + normal(0.14))
    cholesterol = 5.1 + 0.012 * (age - 52) + 0.05 * (bmi - 26.5) + normal(0.85)
    # Those with a higher pressure come to cardiology more often, and wait less there.
    appeal = np.column_stack([np.full(rows, 0.4), 0.02 * (pressure - 126), np.zeros(rows)])
    ward = (appeal + source.gumbel(size=appeal.shape)).argmax(axis=1)
    waiting = np.exp(3.3 - 0.2 * (ward == _WARDS.index("cardiology")) + normal(0.45))
    cost = np.exp(5.2 + 0.008 * (age - 52) + 0.03 * (glucose - 5.4) + normal(0.4))
    table = pd.DataFrame(
        {
            "age": age.round(),
            "sex": np.where(female, "female", "male"),
            "smoker": np.where(smoker, "yes", "no"),
            "ward": np.array(_WARDS)[ward],
            "bmi": bmi.round(1),
            "exercise": exercise.round(),
            "pressure": pressure.round(),
            "pulse": pulse.round(),
            "glucose": glucose.round(1),
            "cholesterol": cholesterol.round(1),
            "waiting": waiting.round(),
            "cost": cost.round(2),
        }
    )
    for name, share in _SHARE_MISSING.items():
        table[name] = table[name].mask(source.uniform(size=rows) < share)
    return table
