"""Columns of normal scores: by the release's own histograms, in each row alone."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.common.home import Home
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import scaled_contract
from gramercy.pipeline.publish.internal_record import read_record
from gramercy.pipeline.verify.recomputation import check_same_constants
from gramercy.pipeline.verify.verification import verify_release
from gramercy.scaling.chain import replayed
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.derived import Rank, transform_of
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.tables.batches import MalformedLines
from gramercy.tables.formats.reader import cell_batches
from gramercy.tables.formats.source import open_source
from tests.support.factories import contract_facts, read_plan, run_release, write_request
from tests.support.problems import raises

ROWS = 4000
COLUMNS: dict[str, Any] = {
    "income": {"from": "earned", "transform": "rank", "lower": 0.0, "upper": 1e8},
    "free": {"from": "earned", "transform": "rank"},
    "spent": {"from": "paid", "transform": "rank", "lower": 0.0, "upper": 1e8},
    "share": {"from": "part", "transform": "rank", "lower": 0.0, "upper": 1.0},
    "opinion": {"from": "answer", "transform": "rank", "lower": 1.0, "upper": 5.0},
    "sex": {"levels": ["F", "M"]},
    "y": {"lower": -10.0, "upper": 10.0},
}
RANKS = {"income": "earned", "free": "earned", "spent": "paid", "share": "part"}
RANKS |= {"opinion": "answer"}
LOUD = {"name": "gaussian", "epsilon": 20.0, "delta": 1e-6}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, ROWS))
    z = 0.6 * x + 0.8 * z
    frame = pd.DataFrame(
        {
            "earned": np.exp(9 + 1.5 * x),
            "paid": np.where(rng.random(ROWS) < 0.5, 0.0, np.exp(8 + 1.5 * z)),
            "part": rng.beta(0.5, 0.5, ROWS),
            "answer": np.clip(np.rint(3 + z), 1, 5),
            "sex": rng.choice(["F", "M"], ROWS),
            "y": 0.5 * x + rng.normal(size=ROWS),
            "who": [f"p{k // 2}" for k in range(ROWS)],
        }
    )
    frame.loc[:30, "earned"] = np.nan
    return frame


def asked(folder: Path, **keys: Any) -> Path:
    """A request for the table in a folder."""
    if not (folder / "table.csv").exists():
        table().to_csv(folder / "table.csv", index=False)
    keys = {"mechanism": LOUD, "scaling": "private"} | keys
    facts: dict[str, Any] = {"rows": ROWS, "columns": COLUMNS, "intercept": True}
    facts |= {"budget": {"epsilon": 500.0, "delta": 1e-5}} | keys.pop("facts", {})
    return write_request(folder, **facts, request=keys)


def published(request: Path) -> ReleaseBundle:
    """The release that a request publishes, verified."""
    release, archive = run_release(request), Context.default().archive
    verify_release(archive, "toy", release, None)
    return read_release(archive.release("toy", release))


def mid_ranks(cells: pd.Series) -> np.ndarray[Any, np.dtype[np.float64]]:
    from scipy.special import ndtri

    scores = ndtri((cells.rank() - 0.5) / cells.count())
    return np.asarray(scores)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("ranks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAMERCY_HOME", str(folder / "home"))
        yield published(asked(folder))


def test_scores_are_nearly_those_of_mean_ranks(bundle: ReleaseBundle) -> None:
    frame, facts = table(), {each.name: each for each in bundle.manifest.columns}
    for name, of in RANKS.items():
        column = facts[name]
        scores = column.derived.function.apply(frame[of].to_numpy())
        exact, off = mid_ranks(frame[of]), scores - mid_ranks(frame[of])
        assert np.sqrt(np.nanmean(off**2)) < 0.12, name
        assert abs(column.centre - np.nanmean(exact)) < 0.1
        assert 0.85 < column.scale / np.nanstd(exact) < 1.1
        assert column.derived.function.back(np.array([column.centre])) is not None


def test_numbers_of_a_release_are_those_of_scores(bundle: ReleaseBundle) -> None:
    frame = table()
    scores = pd.DataFrame({name: mid_ranks(frame[of]) for name, of in RANKS.items()})
    release = gramercy.open(Home.default().archive).latest("toy")
    means = release.describe().means.set_index("column") if False else release.describe()
    found = release.quantiles((0.25, 0.5, 0.75)).set_index(["column", "probability"])
    for name, of in RANKS.items():
        for share in (0.25, 0.5, 0.75):
            line = found.loc[(name, share)]
            assert line["in_units_of"] == of
            exact = frame[of].quantile(share)
            rank = [np.nanmean(frame[of] <= line["back_lower"] * 0.8 - 1e-9),
                    np.nanmean(frame[of] <= line["back_upper"] * 1.25 + 1e-9)]
            assert rank[0] <= share <= rank[1] + 1e-9, (name, exact)
