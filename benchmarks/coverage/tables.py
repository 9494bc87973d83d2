"""From measured cells to one line a setting, and to summaries of lines."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from benchmarks.coverage.cells import Cell, Result

Results = dict[Cell, Result]
BAND = (0.93, 0.97)
FEW = 0.2  # share of the entries: where fewer are known, these are the lucky ones
SURE = 2.0  # standard errors


def intervals(results: Results) -> pd.DataFrame:
    """A line for every setting and quantity: the setting, and what `Coverage` holds."""
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
    """A line for every setting, kind of correlation and rate, with what `Found` holds."""
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
    """Of `intervals`: where some entries are known."""
    return lines[lines["held"].notna()]


def judged(lines: pd.DataFrame) -> pd.DataFrame:
    """Of `intervals`: where not only the lucky ones are known."""
    return known(lines[lines["known"] >= FEW])


def outside(lines: pd.DataFrame) -> pd.DataFrame:
    """Of `intervals`: where coverage is outside of the band, lowest first."""
    some = known(lines)
    return some[~some["held"].between(*BAND)].sort_values("held", kind="stable")


def over(lines: pd.DataFrame) -> pd.DataFrame:
    """Of `discoveries`: where more are false than the rate allows, by more than luck."""
    return lines[lines["false"] - SURE * lines["error"] > lines["rate"]]
