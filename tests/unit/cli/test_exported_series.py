"""Exports of a cumulative series: its sums are decoded from the exported files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.pipeline.context import Context
from tests.support.cumulative import publish_steps
from tests.support.factories import contract_facts, run_json
from tests.support.public_formats import croissant_errors, registry_errors
from tests.unit.cli.test_export import STATED, package_errors, rows

pytestmark = pytest.mark.slow

LEVELS = {"columns": contract_facts(p=3)["columns"] | {"ward": {"levels": [1, 2]}}}


def decoded(folder: Path, release: str) -> tuple[Any, Any]:
    """The sum of all rows so far of a release in a package, and its number, by the description."""
    by_name = {each["release"]: each for each in rows(folder / "releases.csv")}
    last = by_name[f"toy/{release}"]
    alone = list[Any]()
    for name in [*last["earlier"].split(), release]:
        step = by_name[f"toy/{name}"]
        numbers = pd.read_parquet(folder / step["encoded"])["value"].map(int)
        *before, own = map(int, step["weights"].split())
        rest = numbers - sum(w * g for w, g in zip(before, alone, strict=True))
        alone.append(rest / own)
    total = sum(alone)
    entries, count = total[:-1], float(total.iloc[-1])
    return entries / (4 ** int(last["bits"]) * float(last["shrinkage"]) ** 2), count


def test_a_series_is_decoded_from_an_exported_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = publish_steps(tmp_path, {}, {})
    archive, folder = Context.default().archive, tmp_path / "package"
    for name in names:
        assert package_errors(archive.release("toy", name) / "datapackage.json") == []
    run_json("export", "--package", folder, capsys=capsys)
    assert package_errors(folder / "datapackage.json") == []
    assert croissant_errors(folder / "croissant.json") == []
    charged = [each for each in rows(folder / "budgets.csv") if each["what"] == "charged"]
    assert [each["step"] for each in charged] == ["1", "2", "3"]
    assert [each["included_in"] for each in charged] == ["", *[f"toy/{names[0]}"] * 2]
    for number, name in enumerate(names, 1):
        bundle = read_release(archive.release("toy", name))
        (row,) = (each for each in rows(folder / "releases.csv") if each["release"][4:] == name)
        assert (row["step"], row["steps"]) == (str(number), "3")
        entries, count = decoded(folder, name)
        assert count == pytest.approx(bundle.manifest.rows.observed, rel=1e-12)
        i, j = np.triu_indices(len(bundle.raw))
        expected = bundle.raw[i, j] * bundle.manifest.rows.value
        assert np.allclose(entries.astype(float), expected, rtol=1e-9, atol=1e-9)


def test_bundles_and_registry_entries_of_a_series_of_groups_are_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, last = publish_steps(tmp_path, LEVELS, {"by": "ward"})
    place = Context.default().archive.release("toy", last)
    assert package_errors(place / "datapackage.json") == []
    folder, name = tmp_path / "entries", f"toy/{last}"
    done = run_json("export", name, "--registry", folder, *STATED, capsys=capsys)
    entry = yaml.safe_load(Path(done["registry"][0]).read_text(encoding="utf-8"))
    assert registry_errors(entry) == []
    model = entry["deployment"]["deployment_model"]
    assert (model["release_type"], model["data_source_type"]) == ("Many releases", "Dynamic")
    card = read_release(place).manifest.card
    assert card["series"] in model["release_type_details"]
    loss = entry["deployment"]["privacy_loss"]
    assert loss["privacy_parameters_details"] == card["statement"]
    assert "all 3 releases of this series" in card["statement"]
