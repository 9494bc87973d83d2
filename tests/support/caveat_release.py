"""A release with a caveat of most kinds: its table, and its publication by the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.support.black_box.replay import patched_sampler
from tests.support.factories import run_pipeline, write_request

ROWS = 12_000
COLUMNS: dict[str, Any] = {
    "fine": {"lower": -5.0, "upper": 5.0},
    "rare": {"lower": 0.0, "upper": 1e6},
    "tail": {"lower": 0.0, "upper": 1e5},
    "first": {"lower": -50.0, "upper": 50.0},
    "second": {"lower": -50.0, "upper": 50.0},
    "ward": {"levels": ["A", "B", "C"]},
}


def caveat_table() -> pd.DataFrame:
    """`rare` is almost always zero, `tail` has one, and where `fine` is high others are missing."""
    stream = np.random.default_rng(11)
    shared = stream.normal(size=ROWS)
    missing = stream.random(ROWS) < 1 / (1 + np.exp(1 - 2 * shared))

    def mixed() -> Any:
        return 0.6 * shared + 0.8 * stream.normal(size=ROWS)

    return pd.DataFrame(
        {
            "fine": mixed(),
            "rare": np.where(np.arange(ROWS) % 400 == 0, 1e5, 0.0),
            "tail": np.exp(2 + 2 * mixed()),
            "first": np.where(missing, np.nan, 10 + 5 * mixed()),
            "second": np.where(missing, np.nan, 10 + 5 * mixed()),
            "ward": stream.choice(["A", "B", "C"], size=ROWS, p=[0.5, 0.3, 0.2]),
        }
    )


@contextmanager
def seeded_noise(seed: int) -> Iterator[None]:
    """Releases have the noise of a seed, because chance decides which caveats they have."""
    stream = np.random.default_rng(seed)

    def noise(name: str, parameters: tuple[float, ...], size: int) -> Any:
        assert name == "rounded_gaussian"
        return np.rint(parameters[0] * stream.normal(size=size)).astype(np.int64)

    with patched_sampler(noise):
        yield


def publish_caveats(folder: Path) -> Path:
    """Publish the release with its estimates and its report; return the folder of the release."""
    with seeded_noise(5):
        return run_pipeline(caveat_request(folder))


def caveat_request(folder: Path, **changes: Any) -> Path:
    """Write the table, its contract, and a request with private constants."""
    caveat_table().to_csv(folder / "table.csv", index=False)
    request = {
        "mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6},
        "scaling": "private",
        "estimates": [{"name": "moments"}, {"name": "intervals"}, {"name": "graphical-lasso"}],
    }
    facts = {"rows": ROWS, "columns": COLUMNS, "intercept": True}
    budget = {"epsilon": 20.0, "delta": 1e-5}
    return write_request(folder, request=request, budget=budget, **facts | changes)
