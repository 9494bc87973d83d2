"""The demo: a made-up table of visits, as if a clinic published it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pyarrow
from pyarrow.csv import write_csv

from gramercy.common.home import Home
from gramercy.pipeline.demo.visits import visits

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
