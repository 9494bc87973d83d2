"""``python -m benchmarks.papers.constants`` writes a centre and scale for every column.

A data steward would declare these constants in the contract from general knowledge. Here they were
computed once from the tables, to one digit, and fixed in `constants.json`. So replacing a row does
not change them.
"""

from __future__ import annotations

import json
from itertools import islice

import numpy as np

from benchmarks.graphs.truths import centres, scales
from benchmarks.papers import data

MOST = {"colon_alon1999": 100}  # number of columns in use, for tables with many
LOGARITHMS = ("sachs", "soil_lauber2009")  # tables whose cells x are replaced by log(1 + x)
OTHERS = ("chickenpox_hungary", "ieee14_acpf", "ieee118_acpf", "ionosphere", "parkinsons")


def declared(table: str) -> dict[str, object]:
    """Compute the entry of a table in `constants.json`; constant columns are left out."""
    known = data.frame(table)
    logarithm = table in LOGARITHMS
    cells = known.to_numpy(float)
    cells = np.log1p(cells) if logarithm else cells
    names = [name for name, of in zip(known.columns, cells.T, strict=True) if of.std() > 0]
    names = list(islice(names, MOST.get(table)))
    kept = cells[:, known.columns.get_indexer(names)]
    return {
        "logarithm": logarithm,
        "centre": dict(zip(names, (_rounded(x) for x in centres(kept)), strict=True)),
        "scale": dict(zip(names, (_rounded(x) for x in scales(kept)), strict=True)),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


if __name__ == "__main__":
    found = {table: declared(table) for table in sorted((*MOST, *LOGARITHMS, *OTHERS))}
    data.CONSTANTS.write_text(json.dumps(found, indent=1) + "\n")
