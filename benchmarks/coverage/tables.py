"""Tables of the measured cells: one row per setting, and selections of rows."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from benchmarks.coverage.cells import Cell, Result

Results = dict[Cell, Result]
BAND = (0.93, 0.97)
FEW = 0.2  # with a smaller share of known entries, coverage describes a selection
SURE = 2.0  # standard errors that a deviation has to exceed


def intervals(results: Results) -> pd.DataFrame:
    """One row per setting and quantity, with the fields of `Coverage`."""
    lines = [
        {
            **asdict(cell),
            "family": each.family,
            "strength": each.strength,
            "releases": each.releases,
            "of": of,
            **asdict(coverage),
        }
        for cell, result in results.items()
        for each in result.settings
        for of, coverage in each.coverage.items()
    ]
    return pd.DataFrame(lines).astype({"held": float, "error": float, "width": float})


def discoveries(results: Results) -> pd.DataFrame:
    """One row per setting, kind of correlation and rate, with the fields of `DiscoveryRates`."""
    return pd.DataFrame(
        [
            {
                **asdict(cell),
                "family": each.family,
                "strength": each.strength,
                "of": of,
                "rate": float(rate),
                **asdict(found),
            }
            for cell, result in results.items()
            for each in result.settings
            for of, rates in each.found.items()
            for rate, found in rates.items()
        ]
    )


def known(lines: pd.DataFrame) -> pd.DataFrame:
    """Rows of `intervals` with known entries."""
    return lines[lines["held"].notna()]


def with_enough_known(lines: pd.DataFrame) -> pd.DataFrame:
    """Rows of `intervals` with at least the share `FEW` of entries known."""
    return known(lines[lines["known"] >= FEW])


def outside(lines: pd.DataFrame) -> pd.DataFrame:
    """Rows of `intervals` whose coverage is outside the tolerance, lowest first."""
    some = known(lines)
    return some[~some["held"].between(*BAND)].sort_values("held", kind="stable")


def over(lines: pd.DataFrame) -> pd.DataFrame:
    """Rows of `discoveries` with significantly more false discoveries than the rate allows."""
    return lines[lines["false"] - SURE * lines["error"] > lines["rate"]]
