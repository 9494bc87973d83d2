"""A survey with numbers and levels: its table, and releases of it with seeded noise."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gramercy.estimators.noise.denoise import denoise
from gramercy.schemas.evidence import Evidence, Fold
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.noise import NoiseLaw
from tests.support.factories import run_release, write_request

WARDS, SEXES = ("A", "B", "C"), ("f", "m")
NUMERIC = {"income": (0.0, 120.0), "age": (0.0, 100.0), "hours": (0.0, 80.0)}
RADIUS = 12.0


def survey_table(rows: int = 5000, seed: int = 3) -> pd.DataFrame:
    """A table in which ward and sex are dependent, and so are income, age and hours."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(WARDS, size=rows, p=[0.5, 0.3, 0.2])
    sex = np.where(rng.random(rows) < 0.4 + 0.2 * (ward == "A"), "f", "m")
    sex = np.where(rng.random(rows) < 0.03, "x", sex)  # a level that is not declared
    shared = rng.normal(size=rows)
    income = 50 + 8 * (ward == "A") + 9 * shared + rng.normal(scale=4, size=rows)
    hours = 38 + 5 * shared + rng.normal(scale=4, size=rows)
    age = rng.normal(45, 12, size=rows)
    numbers = {"income": income, "age": age, "hours": hours}
    return pd.DataFrame({**numbers, "ward": ward, "sex": sex})


def survey_columns() -> tuple[ColumnFacts | LevelsFacts, ...]:
    """The columns as a contract with bounds declares them."""
    return (
        *(
            ColumnFacts(name=k, lower=a, upper=b, centre=(a + b) / 2, scale=(b - a) / 8)
            for k, (a, b) in NUMERIC.items()
        ),
        LevelsFacts(name="ward", levels=WARDS),
        LevelsFacts(name="sex", levels=SEXES),
    )


def survey_evidence(
    table: pd.DataFrame, sd: float = 0.0, seed: int = 0, folds: int = 1
) -> Evidence:
    """A release without clipped rows; `sd` is the noise on the mean of z z^T off the diagonal."""
    facts, rng = survey_columns(), np.random.default_rng(seed)
    numbers = [(table[c.name] - c.centre) / c.scale for c in facts if isinstance(c, ColumnFacts)]
    levels = [table["ward"] == each for each in WARDS] + [table["sex"] == each for each in SEXES]
    z = np.column_stack([np.ones(len(table)), *numbers, *levels]).astype(np.float64)
    parts = []
    for part in np.array_split(z, folds):
        half = rng.normal(size=(z.shape[1], z.shape[1])) * sd * folds / math.sqrt(2)
        moment = (part.T @ part / len(part) + half + half.T) / RADIUS**2
        parts.append(Fold(moment, float(len(part))))
    raw = sum((fold.moment * fold.rows for fold in parts), np.zeros_like(parts[0].moment))
    raw, off = raw / len(table), sd * math.sqrt(folds) / RADIUS**2
    law = NoiseLaw.none()
    if sd:
        law = NoiseLaw(
            family="gaussian-isotropic", sd_diagonal=off * math.sqrt(2), sd_off_diagonal=off
        )
    names = ["(intercept)", *NUMERIC, *(f"ward={w}" for w in WARDS), *(f"sex={s}" for s in SEXES)]
    sources = (None, *facts[:3], *[facts[3]] * 3, *[facts[4]] * 2)
    return Evidence(
        raw,
        denoise(raw, law, unit=False) if sd else raw,
        law,
        float(len(table)),
        tuple(names),
        sources,
        unit=False,
        radius=RADIUS,
        folds=tuple(parts) if folds > 1 else (),
    )


def survey_request(
    folder: Path, epsilon: float = 4.0, rows: int = 5000, by: str | None = None
) -> Path:
    """Write the survey with a contract and a request that clips its rows, and may group them."""
    survey_table(rows).to_csv(folder / "table.csv", index=False)
    columns: dict[str, Any] = {
        name: {"lower": lower, "upper": upper, "scale": (upper - lower) / 8}
        for name, (lower, upper) in NUMERIC.items()
    }
    columns |= {"ward": {"levels": list(WARDS)}, "sex": {"levels": list(SEXES)}}
    request = {
        "mechanism": {"name": "gaussian", "epsilon": epsilon, "delta": 1e-6},
        "normalisation": {"kind": "clip", "radius": 5.0},
        "by": by,
    }
    budget = {"epsilon": 2 * epsilon, "delta": 1e-5, "per": "lifetime"}
    facts = {"rows": rows, "columns": columns, "intercept": True, "budget": budget}
    return write_request(folder, request=request, **facts)


def survey_release(
    folder: Path, epsilon: float = 4.0, rows: int = 5000, by: str | None = None
) -> str:
    """Publish the survey; return the release id."""
    return run_release(survey_request(folder, epsilon, rows, by))
