"""``python -m benchmarks.papers.constants``: a centre and a scale for every column, once.

A steward declares them in the contract, from what is known of such measurements. Here no one knows,
so they were read off the tables, to one digit, and are fixed in `constants.json` since: no row that
is replaced moves them any more.
"""

from __future__ import annotations

import json
from itertools import islice

import numpy as np

from benchmarks.graphs.data import centres, scales
from benchmarks.papers import data

MOST = {"colon_alon1999": 100}  # columns that are used, of many
LOGARITHMS = ("sachs", "soil_lauber2009")  # of one more than a cell
OTHERS = ("chickenpox_hungary", "ieee14_acpf", "ieee118_acpf", "ionosphere", "parkinsons")


def declared(table: str) -> dict[str, object]:
    """What the file says of a table; columns that are constant are left out."""
    known = data.frame(table)
    logarithm = table in LOGARITHMS
    cells = known.to_numpy(float)
    cells = np.log1p(cells) if logarithm else cells
    names = [name for name, of in zip(known.columns, cells.T, strict=True) if of.std() > 0]
    names = list(islice(names, MOST.get(table)))
    kept = cells[:, known.columns.get_indexer(names)]
    return {
        "logarithm": logarithm,
        "centre": dict(zip(names, (_short(x) for x in centres(kept)), strict=True)),
        "scale": dict(zip(names, (_short(x) for x in scales(kept)), strict=True)),
    }


def _short(value: float) -> float:
    return float(f"{value:.6g}")


if __name__ == "__main__":
    found = {table: declared(table) for table in sorted((*MOST, *LOGARITHMS, *OTHERS))}
    data.CONSTANTS.write_text(json.dumps(found, indent=1) + "\n")
