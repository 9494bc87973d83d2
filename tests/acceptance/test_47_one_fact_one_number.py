"""One fact has one number and one error wherever it is stated.

Ten releases of different columns are read by every face: Python, tables, the summary, groups,
comparisons, synthetic rows, and what the report shows. For the same fact all of them state the same
value, and the same bounds where they state any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.common.home import Home
from gramercy.estimators import registry
from gramercy.estimators.table_comparison import measure, numbers
from gramercy.pipeline.context import Context
from gramercy.reports.column_summaries import level_means, own_columns, row_groups
from gramercy.reports.marginal_tables import marginal_table
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.factories import home_at, run_release, write_request
from tests.support.survey import NUMERIC, SEXES, WARDS, survey_table

ROWS = 6000
ALL, OTHER = "(all)", "(no declared level)"
PRIVATE = {"mechanism": {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6}, "scaling": "private"}
CLIPPED = {
    "mechanism": {"name": "gaussian", "epsilon": 2.0, "delta": 1e-6},
    "normalisation": {"kind": "clip", "radius": 4.0},
}
BOUNDS = {name: {"lower": low, "upper": high} for name, (low, high) in NUMERIC.items()}
SCALED = {
    name: {**each, "scale": (each["upper"] - each["lower"]) / 8} for name, each in BOUNDS.items()
}
LEVELS = {"ward": {"levels": list(WARDS)}, "sex": {"levels": list(SEXES)}}


@dataclass(frozen=True)
class Case:
    """A release: what is requested, and how its table and contract differ from the survey's."""

    request: dict[str, Any]
    columns: dict[str, Any] = field(default_factory=lambda: BOUNDS | LEVELS)
    contract: dict[str, Any] = field(default_factory=dict)
    table: str = "survey"


def _table(kind: str) -> pd.DataFrame:
    table, rng = survey_table(ROWS), np.random.default_rng(5)
    if kind == "missing":
        table.loc[rng.random(ROWS) < 0.2, ["income", "age"]] = np.nan
        table.loc[rng.random(ROWS) < 0.05, "hours"] = np.nan
        table.loc[rng.random(ROWS) < 0.1, "ward"] = None
    if kind == "zeros":
        table["income"] = np.where(rng.random(ROWS) < 0.93, 0.0, np.exp(3 + rng.normal(size=ROWS)))
    if kind == "spikes":
        table["income"] = np.where(rng.random(ROWS) < 0.6, 0.5, rng.random(ROWS))
        table["hours"] = rng.integers(1, 6, ROWS)
    if kind == "tails":
        table["income"] = 10 * rng.standard_t(2.2, ROWS)
        table["age"] = np.exp(2 + rng.normal(size=ROWS))
    if kind == "persons":
        table["person"] = [f"p{k // 2}" for k in range(ROWS)]
    return table


CASES = {
    "levels": Case(CLIPPED, SCALED | LEVELS),
    "folds": Case(CLIPPED | {"folds": 5}, SCALED | LEVELS),
    "private": Case(PRIVATE),
    "missing": Case(PRIVATE, table="missing"),
    "zeros": Case(
        PRIVATE, BOUNDS | LEVELS | {"income": {"lower": 0.0, "upper": 1e4}}, table="zeros"
    ),
    "spikes": Case(
        PRIVATE,
        BOUNDS
        | LEVELS
        | {"income": {"lower": 0.0, "upper": 1.0}, "hours": {"lower": 1, "upper": 5}},
        table="spikes",
    ),
    "tails": Case(
        PRIVATE,
        LEVELS | {"income": {"lower": -2e4, "upper": 2e4}, "age": {"lower": 0.0, "upper": 2e3}},
        table="tails",
    ),
    "add-remove": Case(PRIVATE, contract={"neighbours": "add-remove"}),
    "persons": Case(
        PRIVATE, contract={"privacy_unit": "person", "persons": ROWS // 2}, table="persons"
    ),
    "groups": Case(PRIVATE | {"by": "ward"}),
    "marginals": Case({"mechanism": PRIVATE["mechanism"] | {"name": "marginals"}}),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with home_at(tmp_path_factory.mktemp("home")) as path:
        yield path


@cache
def _published(name: str, home: Path) -> tuple[Release, ReleaseBundle]:
    case, folder = CASES[name], home / "cases" / name
    folder.mkdir(parents=True)
    _table(case.table).to_csv(folder / "table.csv", index=False)
    budget = {"epsilon": 9.0, "delta": 1e-5, "per": "lifetime"}
    facts = {"id": name, "rows": ROWS, "columns": case.columns, "intercept": True, "budget": budget}
    request = write_request(folder, request=case.request, **facts | case.contract)
    release = run_release(request)
    path = Context.default().archive.release(name, release)
    return gramercy.open(Home.default().archive)[f"{name}/{release}"], read_release(path)


Stated = dict[tuple[str, ...], dict[str, tuple[float, ...]]]


def stated(release: Release, bundle: ReleaseBundle) -> Stated:
    """What each face states about each fact: value, and lower and upper bound if there are any."""
    found: Stated = defaultdict(dict)
    for face in (_python, _summary, _tables, _comparison, _synthetic, _marginals, _report, _groups):
        for fact, numbers_of_it in face(release, bundle):
            found[fact][face.__name__] = tuple(float(each) for each in numbers_of_it)
    return found


Facts = Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]


def _indicators(bundle: ReleaseBundle) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of the matrix columns, and the facts that their means are."""
    manifest = bundle.manifest
    for name, facts in zip(manifest.names, manifest.source_columns, strict=True):
        if isinstance(facts, LevelsFacts):
            yield name, ("share", facts.name, name.partition("=")[2])
        elif facts is not None:
            yield name, ("mean", name)


def _python(release: Release, bundle: ReleaseBundle) -> Facts:
    if bundle.marginals:
        for _, line in release.quantiles().iterrows():
            fact = ("quantile", line["column"], f"{line['probability']:g}")
            yield fact, (line["value"], line["lower"], line["upper"])
    if not len(bundle.raw):
        return
    lower, upper = release.means.interval(0.95)
    for name, fact in _indicators(bundle):
        yield fact, (release.means[name], lower[name], upper[name])


def _summary(release: Release, bundle: ReleaseBundle) -> Facts:
    if not len(bundle.raw):
        return
    found = release.describe()
    yield ("rows",), (found.rows,)
    if found.columns is not None:
        for name, line in found.columns.iterrows():
            yield ("mean", name), (line["mean"], line["mean_lower"], line["mean_upper"])
            if np.isfinite(line["missing"]):
                yield ("missing", name), (line["missing"],)
    if found.levels is not None:
        for (column, level), line in found.levels.iterrows():
            yield ("share", column, level), (line["share"], line["lower"], line["upper"])
            counts = line["count"], line["count_lower"], line["count_upper"]
            yield ("count", column, level), counts
    if found.quantiles is not None:
        for (column, probability), line in found.quantiles.iterrows():
            fact = ("quantile", column, f"{probability:g}")
            yield fact, (line["value"], line["lower"], line["upper"])


def _tables(release: Release, bundle: ReleaseBundle) -> Facts:
    levels = [each for each in bundle.manifest.columns if isinstance(each, LevelsFacts)]
    if not len(bundle.raw) or not levels:
        return
    names = [each.name for each in levels]
    pairs = [(name, "") for name in names] + list(combinations(names, 2))
    for rows, columns in pairs:
        for _, line in release.crosstab(rows, columns or None).cells.iterrows():
            row, column = line["row"], line["column"]
            if ALL in (row, column) or not columns:
                fact = (columns, column) if row == ALL else (rows, row)
                if fact[1] not in (ALL, ""):
                    yield ("share", *fact), (line["share"], line["lower"], line["upper"])
                    counts = line["count"], line["count_lower"], line["count_upper"]
                    yield ("count", *fact), counts


def _comparison(release: Release, bundle: ReleaseBundle) -> Facts:
    if not len(bundle.raw):
        return
    evidence = bundle.evidence
    names = dict(_indicators(bundle))
    found, table = measure(evidence), numbers(evidence)
    for k, (kind, name) in enumerate(zip(table["kind"], table["column"], strict=True)):
        if kind == "mean":
            yield names[name], (found.estimate[k], found.lower[k], found.upper[k])


def _synthetic(release: Release, bundle: ReleaseBundle) -> Facts:
    if not len(bundle.raw):
        return
    lines = registry["synthetic"](name="synthetic", rows=200).fit(bundle.evidence)
    for _, line in lines.tables["marginals"].iterrows():
        if line["quantity"] == "share":
            yield ("share", line["column"], line["level"]), (line["release"],)
        if line["quantity"] == "no level":
            yield ("share", line["column"], OTHER), (line["release"],)
        if line["quantity"] == "missing" and bundle.evidence.present:
            yield ("missing", line["column"]), (line["release"],)


def _marginals(release: Release, bundle: ReleaseBundle) -> Facts:
    if not bundle.marginals:
        return
    for facts in bundle.manifest.columns:
        lines = release.marginals[release.marginals["column"] == facts.name]
        share = lines["share"].tolist()
        assert all(0 <= each <= 1 for each in share)
        assert sum(share) == pytest.approx(1.0, abs=1e-6)
        if isinstance(facts, ColumnFacts):
            yield ("missing", facts.name), (share[-1],)
            continue
        for level, each in zip((*facts.levels, OTHER), share, strict=True):
            yield ("share", facts.name, str(level)), (each,)


def _report(release: Release, bundle: ReleaseBundle) -> Facts:
    own = own_columns(bundle)
    names = dict(_indicators(bundle))
    if own is not None:
        for each in own.columns:
            yield names[each.name], (each.mean.estimate, *each.mean.of_population)
            if each.present is not None:
                yield ("missing", each.name), (1 - each.present,)
        for group in level_means(bundle):
            if group.name in names:
                yield names[group.name], (group.share[0],)
    table = marginal_table(bundle)
    for line in table.lines if table else ():
        facts = next(each for each in bundle.manifest.columns if each.name == line.column)
        texts = [each.split(": ") for each in line.levels or ()]
        fact = ("share", line.column, OTHER)
        if isinstance(facts, ColumnFacts):
            fact = ("missing", line.column)
        yield ("%", *fact), (float(line.missing.partition(" ")[0]),)
        for level, text in texts:
            yield ("%", "share", line.column, level), (float(text.partition(" ")[0]),)


def _groups(release: Release, bundle: ReleaseBundle) -> Facts:
    if not bundle.groups:
        return
    for name, line in release.groups.rows.iterrows():
        yield ("group", name), (line["rows"],)
    for each in row_groups(bundle):
        assert each.rows[0] == pytest.approx(release.groups.rows.loc[each.name, "rows"])
        assert release.groups[each.name].rows == pytest.approx(each.rows[0])
        if each.rows[0] > 1:
            assert release.groups[each.name].describe().rows == pytest.approx(each.rows[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_face_states_the_same(name: str, home: Path) -> None:
    release, bundle = _published(name, home)
    _check(release, bundle)
    for index, each in enumerate(bundle.groups):
        if each.level in WARDS:
            _check(release.groups[each.level], bundle.of_group(index))


def _check(release: Any, bundle: ReleaseBundle) -> None:
    """Every face states the same values and bounds, and shares add up."""
    found = stated(release, bundle)
    percentages = {fact[1:]: each for fact, each in found.items() if fact[0] == "%"}
    facts = {fact: each for fact, each in found.items() if fact[0] != "%"}
    for fact, faces in facts.items():
        values = {face: each[0] for face, each in faces.items()}
        first = next(iter(values.values()))
        assert values == pytest.approx(dict.fromkeys(values, first), rel=1e-9, abs=1e-9), fact
        bounds = {face: each[1:] for face, each in faces.items() if len(each) > 1}
        for each in bounds.values():
            assert each == pytest.approx(next(iter(bounds.values())), rel=1e-9, abs=1e-9), fact
        for shown in percentages.get(fact, {}).values():
            assert shown[0] == pytest.approx(100 * first, abs=0.0501), fact
    assert percentages.keys() <= facts.keys()
    _check_shares(facts, bundle)


def _check_shares(facts: Stated, bundle: ReleaseBundle) -> None:
    """Shares are within [0, 1] and add up to 1, counts to the number of rows."""
    for column in bundle.manifest.columns:
        for kind in ("share", "count"):
            total = 1.0
            own = {
                fact: next(iter(each.values()))
                for fact, each in facts.items()
                if fact[:2] == (kind, column.name)
            }
            if kind == "count" and own:
                total = facts[("rows",)]["_summary"][0]
            if not own or not any(fact[2] == OTHER for fact in own):
                continue
            assert sum(each[0] for each in own.values()) == pytest.approx(total)
            for each in own.values():
                assert all(-1e-12 <= x <= total * 1.5 for x in each)
                assert kind == "count" or all(0 <= x <= 1 for x in each)
    groups = [next(iter(each.values()))[0] for fact, each in facts.items() if fact[0] == "group"]
    if groups:
        assert min(groups) >= 0
        assert sum(groups) == pytest.approx(bundle.manifest.rows.value)


def test_facts_are_stated_by_many_faces(home: Path) -> None:
    release, bundle = _published("missing", home)
    found = stated(release, bundle)
    assert len(found[("share", "ward", "A")]) >= 7
    assert len(found[("count", "ward", OTHER)]) == 2
    assert len(found[("missing", "income")]) >= 4
    assert len(found[("quantile", "income", "0.5")]) == 2
