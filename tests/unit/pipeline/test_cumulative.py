"""Cumulative series: steps drawn in order, decoded to the sum of all rows so far."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release, read_release_manifest
from gramercy.archive.bundles.encoded_file import Encoded, read_encoded
from gramercy.common.home import Home
from gramercy.common.prefix_sums import PrefixSums
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.budget_preview import preview_budget
from gramercy.pipeline.plan.forecast import rank_mechanisms
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.plan.step_charges import missing_steps
from gramercy.pipeline.publish.charging import publish, replay
from gramercy.pipeline.publish.internal_record import page_path, read_record
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.manifest import ReleaseManifest
from tests.support import cumulative
from tests.support.cumulative import MONTHLY, QUARTERLY, seed_noise, visits
from tests.support.factories import write_request
from tests.support.problems import raises

pytestmark = pytest.mark.slow

REQUEST: dict[str, Any] = MONTHLY | {"version": "{period}", "estimates": []}
CLIP = {"kind": "clip", "radius": 2.0}


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seed_noise(monkeypatch)


def written(folder: Path, period: str, table: pd.DataFrame, **keys: Any) -> Path:
    table.to_csv(folder / "table.csv", index=False)
    facts = QUARTERLY | keys.pop("contract", {})
    return write_request(folder, request=REQUEST | {"period": period} | keys, **facts)


def planned(request: Path) -> Plan:
    return make_plan(Context.default(), read_request(request))


def catch_up(request: Path) -> list[ReleaseBundle]:
    """Publish all missing steps of a request in order, and its own; the bundles, verified."""
    context, names = Context.default(), cumulative.catch_up(request)
    for name in names:
        verify_release(context.archive, "toy", name, context.ledger)
    return [read_release(context.archive.release("toy", name)) for name in names]


def months(table: pd.DataFrame) -> np.ndarray[Any, Any]:
    """The step of each row in the first quarter of 2026, or 0."""
    return np.array(
        [day.month if day.year == 2026 and day.month < 4 else 0 for day in table.visited]
    )


@pytest.mark.parametrize("normalisation", [{"kind": "unit"}, CLIP], ids=["unit", "clip"])
@pytest.mark.usefixtures("seeded")
def test_steps_are_drawn_in_order_and_add_up(tmp_path: Path, normalisation: Any) -> None:
    table = visits()
    request = written(tmp_path, "2026-Q1-03", table, normalisation=normalisation)
    first, second, third = catch_up(request)
    assert [b.manifest.cumulative.step for b in (first, second, third)] == [1, 2, 3]
    assert [each.sha256 for each in third.manifest.cumulative.earlier] == [
        first.sha256,
        second.sha256,
    ]
    step = months(table)
    for last, bundle in enumerate((first, second, third), 1):
        facts, rows = bundle.manifest, table[(step > 0) & (step <= last)]
        assert abs(facts.rows.observed - len(rows)) < 5 * facts.rows.sd
        cells = np.clip(rows[["c0", "c1", "c2"]].to_numpy(), -5, 5) / 5
        scaled = np.column_stack([np.ones(len(rows)), cells])
        length = np.linalg.norm(scaled, axis=1, keepdims=True)
        own = scaled / (length if normalisation["kind"] == "unit" else np.maximum(length, 2.0))
        error = bundle.raw * facts.rows.value - own.T @ own
        assert np.abs(error).max() < 5 * facts.noise.sd_diagonal * facts.rows.value
        assert np.abs(error).max() > 0.1 * facts.noise.sd_diagonal * facts.rows.value
    # An answered request is free, and all steps together are charged once.
    assert replay(Context.default(), planned(request)) == third.manifest.release
    (statement,) = Context.default().ledger.statements("toy")
    assert statement.total.mu == pytest.approx(third.manifest.guarantee.mu, rel=1e-9)


@pytest.mark.usefixtures("seeded")
def test_run_that_catches_up_reads_each_step_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()

    def counted(folder: Path, manifest: ReleaseManifest) -> tuple[Encoded, ...]:
        read.append(read_release_manifest(folder).dataset.version)
        return read_encoded(folder, manifest)

    monkeypatch.setattr("gramercy.pipeline.publish.earlier_steps.read_encoded", counted)
    catch_up(written(tmp_path, "2026-Q1-02", visits()))
    assert read == ["2026-Q1-01"]
    catch_up(written(tmp_path, "2026-Q1-03", visits()))  # another run
    assert read == ["2026-Q1-01", "2026-Q1-01", "2026-Q1-02"]
    read.clear()
    catch_up(written(tmp_path, "2026-Q2-06", visits()))
    assert read == ["2026-Q2-04", "2026-Q2-05"]


@pytest.mark.usefixtures("seeded")
def test_a_step_is_not_drawn_before_those_before_it(tmp_path: Path) -> None:
    plan = planned(written(tmp_path, "2026-Q1-02", visits()))
    with raises(families.PERIOD):
        publish(Context.default(), plan, accumulate(plan))
    assert Context.default().ledger.charges("toy") == ()


def interrupted(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charge a plan, and fail before its noise is drawn."""

    def fail(*_: Any) -> None:
        raise RuntimeError

    sums = accumulate(plan)
    with monkeypatch.context() as patch:
        patch.setattr("gramercy.pipeline.publish.charging.draw_into", fail)
        with pytest.raises(RuntimeError):
            publish(Context.default(), plan, sums)


@pytest.mark.usefixtures("seeded")
def test_a_spent_step_blocks_later_ones_until_it_is_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The growth of the guarantee is charged, and stated by that step and all later ones."""
    (first,) = catch_up(written(tmp_path, "2026-Q1-01", visits()))
    spent = planned(written(tmp_path, "2026-Q1-02", visits()))
    interrupted(spent, monkeypatch)
    last = written(tmp_path, "2026-Q1-03", visits())
    with raises(families.SPENT, version="2026-Q1-03", earlier="2026-Q1-02"):
        catch_up(last)
    context = Context.default()
    before = context.ledger.statement("toy", "2026-Q1").total.mu
    assert before == pytest.approx(first.manifest.guarantee.mu, rel=1e-9)
    again = spent.with_new_charge("2026-Q1-02-r1")
    assert preview_budget(context, again).due.mu > 0
    publish(context, again, accumulate(again))
    (third,) = catch_up(last)
    assert third.manifest.cumulative.draws == (1, 2, 1)
    prefixes = PrefixSums(3)
    expected = prefixes.squared_norm([1, 2, 1]) / prefixes.squared_norm()
    total = context.ledger.statement("toy", "2026-Q1").total.mu
    for mu in (total, third.manifest.guarantee.mu):
        assert (mu / before) ** 2 == pytest.approx(expected, rel=1e-9)


@pytest.mark.usefixtures("seeded")
def test_groups_of_a_series_add_up(tmp_path: Path) -> None:
    table = visits().assign(ward=lambda frame: np.where(frame.index % 3, "A", "B"))
    columns = {"c0": {"lower": -5.0, "upper": 5.0}, "ward": {"levels": ["A", "B"]}}
    keys = {"by": "ward", "normalisation": CLIP, "contract": {"columns": columns}}
    *_, second = catch_up(written(tmp_path, "2026-Q1-02", table, **keys))
    facts, step = second.manifest, months(table)
    assert [len(each.raw) for each in second.groups] == [2, 2, 2]
    for level, group in zip(("A", "B", None), facts.groups, strict=True):
        exact = int(((table.ward == level) & (step > 0) & (step <= 2)).sum())
        assert abs(group.rows.observed - exact) < 5 * group.rows.sd
    total = sum(
        x.raw * rows.rows.value for x, rows in zip(second.groups, facts.groups, strict=True)
    )
    assert np.allclose(total / facts.rows.value, second.raw)


@pytest.mark.usefixtures("seeded")
def test_public_numbers_of_rows_are_fixed_by_their_first_release(tmp_path: Path) -> None:
    """Under replace-one; a row may have other cells, and dates may be exchanged."""
    facts = {"neighbours": "replace-one"}
    table = visits()
    first, second = catch_up(written(tmp_path, "2026-Q1-02", table, contract=facts))
    step = months(table)
    counts = tuple(int((step == k).sum()) for k in (1, 2, 3))
    assert first.manifest.cumulative.rows == counts[:1]
    assert second.manifest.cumulative.rows == counts[:2]
    assert second.manifest.rows.status == "public"
    assert second.manifest.rows.value == sum(counts[:2])
    january = int(np.flatnonzero(step == 1)[0])
    late = planned(
        written(tmp_path, "2026-Q1-03", table.drop(index=table.index[january]), contract=facts)
    )
    sums, charges = accumulate(late), Context.default().ledger.charges("toy")
    with raises(families.ROW_COUNT, step="2026-Q1-01", rows=counts[0] - 1, declared=counts[0]):
        publish(Context.default(), late, sums)
    assert Context.default().ledger.charges("toy") == charges
    table.loc[table.index[january], "c0"] = 0.5
    (third,) = catch_up(written(tmp_path, "2026-Q1-03", table, contract=facts))
    assert third.manifest.cumulative.rows == counts


@pytest.mark.usefixtures("seeded")
def test_a_steward_learns_that_earlier_steps_have_changed(tmp_path: Path) -> None:
    """In the internal record alone: exact numbers are private."""
    table, home = visits(), Home.default()
    catch_up(written(tmp_path, "2026-Q1-02", table))
    step = months(table)
    assert read_record(home, "toy", "2026-Q1-02-r1")["changed_steps"] == {}
    late = table.drop(index=table.index[np.flatnonzero(step == 1)[:3]])
    catch_up(written(tmp_path, "2026-Q1-03", late))
    record, rows = read_record(home, "toy", "2026-Q1-03-r1"), int((step == 1).sum())
    assert record["changed_steps"] == {"2026-Q1-01": [rows, rows - 3]}
    assert "Earlier steps have changed" in page_path(home, "toy", "2026-Q1-03-r1").read_text()


@pytest.mark.usefixtures("seeded")
def test_names_of_files_give_steps_for_a_lifetime(tmp_path: Path) -> None:
    table, step = visits(), months(visits())
    for month in (1, 2, 3):
        part = table[step == month].drop(columns="visited")
        part.to_csv(tmp_path / f"visits-2026-{month:02}.csv", index=False)
    series = {"every": "month", "from": "2026-01-01", "steps": 3}
    lifetime = {"budget": QUARTERLY["budget"] | {"per": "lifetime"}, "period": None}
    facts = {"source": "visits-{year}-{month}.csv"} | lifetime
    request = written(tmp_path, "2026-03", table, cumulative=series, contract=facts)
    *_, last = catch_up(request)
    assert last.manifest.release == "2026-03-r1"
    assert abs(last.manifest.rows.observed - (step > 0).sum()) < 5 * last.manifest.rows.sd


@pytest.mark.parametrize(
    ("day", "lag", "label"),
    [
        ("2026-04-01", 0, "2026-Q1-03"),
        ("2026-03-31", 0, "2026-Q1-02"),
        ("2026-04-01", 5, "2026-Q1-02"),
        ("2026-04-29", 0, "2026-Q1-03"),
        ("2026-05-01", 0, "2026-Q2-04"),
    ],
)
def test_a_schedule_publishes_the_last_complete_step(
    tmp_path: Path, day: str, lag: int, label: str
) -> None:
    """Also if it is the last one of the window before."""
    series = {"every": "month", "lag": lag}
    request = written(tmp_path, label, visits(20), cumulative=series)
    moment = datetime.datetime.fromisoformat(f"{day}T03:00:00+00:00")
    undated = read_request(request).model_copy(update={"period": None})
    plan = make_plan(Context.default(), undated, at=moment)
    assert plan.request.version == label
    missing = [each.request.version for each in missing_steps(Context.default(), plan)]
    first = 4 if "Q2" in label else 1
    assert missing == [f"{label[:-2]}{month:02}" for month in range(first, int(label[-2:]))]


@pytest.mark.parametrize("version", ["2026-Q1-03.2", "2026-Q1", "2026-Q1-04"])
def test_a_version_that_is_not_a_step_is_refused(tmp_path: Path, version: str) -> None:
    with raises(families.PERIOD):
        planned(written(tmp_path, version, visits(20), version=version))


def weeks(rows: int, p: int, common: float) -> pd.DataFrame:
    """Correlated columns in the first quarter."""
    rng = np.random.default_rng(8)
    days = [
        datetime.date(2026, 1, 1) + datetime.timedelta(int(k)) for k in rng.integers(0, 90, rows)
    ]
    shared = rng.normal(size=(rows, 1))
    cells = common * shared + (1 - common**2) ** 0.5 * rng.normal(size=(rows, p))
    return pd.DataFrame(cells, columns=[f"c{k}" for k in range(p)]).assign(visited=days)


@pytest.mark.parametrize("source", ["marginals", "whitened"])
@pytest.mark.usefixtures("seeded")
def test_constants_and_metric_of_another_release_are_used_for_all_steps(
    tmp_path: Path, source: str
) -> None:
    table, columns = (
        weeks(20_000, 6, 0.9),
        {f"c{k}": {"lower": -50.0, "upper": 50.0} for k in range(6)},
    )
    facts = {"rows": 20_000, "columns": columns}
    mechanism = {"name": "gaussian" if source == "whitened" else "marginals", "epsilon": 1.5}
    asked: dict[str, Any] = {"mechanism": mechanism | {"delta": 1e-6}, "cumulative": None}
    if source == "whitened":
        asked |= {"scaling": "private"}
    before = planned(written(tmp_path, "2026-Q1", table, contract=facts, **asked))
    constants = publish(Context.default(), before, accumulate(before))
    other = read_release(Context.default().archive.release("toy", constants)).manifest
    assert other.is_whitened == (source == "whitened")
    own: dict[str, Any] = {"scaling": {"from": constants}, "contract": facts}
    first, second, third = catch_up(written(tmp_path, "2026-Q1-03", table, **own))
    stated = {(b.manifest.radius, b.manifest.metric_radius) for b in (first, second, third)}
    assert len(stated) == 1
    assert third.manifest.columns == other.columns
    assert third.manifest.is_whitened == other.is_whitened
    assert third.manifest.scaling.spent == 0
    correlation = Release(Context.default().archive, "toy", third.manifest.release).correlation
    assert np.abs(correlation.to_numpy() - table[list(columns)].corr().to_numpy()).max() < 0.15


def test_steps_that_need_too_much_memory_are_refused(tmp_path: Path) -> None:
    columns = {f"c{k}": {"lower": -5.0, "upper": 5.0} for k in range(700)}
    facts = {"columns": columns, "budget": QUARTERLY["budget"] | {"per": "year"}}
    daily = written(tmp_path, "2026-01-01", visits(20), cumulative="day", contract=facts)
    with raises(families.REQUEST_USE, steps=365):
        planned(daily)


@pytest.mark.usefixtures("seeded")
def test_independent_noise_of_equal_scale(tmp_path: Path) -> None:
    """The noise of the sum so far is that of the mechanism, times what decoding adds."""
    mechanism = REQUEST["mechanism"] | {"name": "gaussian-iid"}
    *_, third = catch_up(written(tmp_path, "2026-Q1-03", visits(), mechanism=mechanism))
    assert third.manifest.noise.sd_diagonal == third.manifest.noise.sd_off_diagonal


def test_only_gaussian_noise_is_compared(tmp_path: Path) -> None:
    plan = planned(written(tmp_path, "2026-Q1-03", visits(20)))
    ranked, _ = rank_mechanisms(plan.spec, plan.request.mechanism)
    assert [each.name for each in ranked] == ["gaussian", "gaussian-iid"]


@pytest.mark.usefixtures("seeded")
def test_interrupted_publication_of_a_step_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sealed step is published with the same bytes before the next one is drawn."""
    first = planned(written(tmp_path, "2026-Q1-01", visits()))
    sums, context = accumulate(first), Context.default()

    def fail(*_: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(type(context.archive), "commit", fail)
        with pytest.raises(RuntimeError):
            publish(context, first, sums)
    (charge,) = context.ledger.charges("toy")
    assert charge.state is ChargeState.SEALED
    finished, second = catch_up(written(tmp_path, "2026-Q1-02", visits()))
    assert finished.sha256 == charge.sha256
    assert second.manifest.cumulative.draws == (1, 1)


@pytest.mark.usefixtures("seeded")
def test_noise_of_the_sum_so_far_is_as_stated(tmp_path: Path) -> None:
    """By the root mean square of 780 entries; for single steps, too, as analysts take them."""
    names = [f"c{k}" for k in range(40)]
    table = weeks(1_000, 40, 0.5)
    facts = {"columns": {name: {"lower": -5.0, "upper": 5.0} for name in names}}
    request = written(tmp_path, "2026-Q1-W14", table, cumulative="week", contract=facts)
    bundles, prefixes = catch_up(request), PrefixSums(14)
    step = np.array([min(day.isocalendar().week, 14) for day in table.visited])
    scaled = np.column_stack([np.ones(len(table)), table[names].clip(-5, 5) / 5])
    unit = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    upper, spreads = np.triu_indices(41, 1), list[float]()
    for last, bundle in enumerate(bundles, 1):
        own, rows = unit[step <= last], bundle.manifest.rows.value
        error = (bundle.raw * rows - own.T @ own)[upper]
        stated = bundle.manifest.noise.sd_off_diagonal * rows
        assert np.sqrt((error**2).mean()) == pytest.approx(stated, rel=0.12)
        spreads.append(stated / prefixes.spread(last))
    assert np.ptp(spreads) < 1e-9 * spreads[0]


@pytest.mark.usefixtures("seeded")
def test_a_step_with_other_whole_numbers_is_refused_before_its_charge(tmp_path: Path) -> None:
    """The lattice of integer rows is fitted to the declared number of rows."""
    table, many = visits(), {"rows": 900 << 14, "budget": QUARTERLY["budget"] | {"delta": 1e-8}}
    keys = {"mechanism": {"name": "gaussian", "epsilon": 2.0, "delta": 1e-9}}
    few = {"budget": many["budget"]}
    catch_up(written(tmp_path, "2026-Q1-01", table, contract=few, **keys))
    context = Context.default()
    second = planned(written(tmp_path, "2026-Q1-02", table, contract=many, **keys))
    with raises(families.TERMS, changed=("rows",), rows=900):
        replay(context, second)
    sums = accumulate(second)
    with raises(families.TERMS, changed=("rows",)):
        publish(context, second, sums)
    other = planned(written(tmp_path, "2026-Q1-02", table, contract=few | {"curator": "B"}, **keys))
    with raises(families.TERMS, changed=("curator",)):
        replay(context, other)
    assert len(context.ledger.charges("toy")) == 1
    catch_up(written(tmp_path, "2026-Q1-02", table, contract=few | {"rows": 1000}, **keys))


@pytest.mark.usefixtures("seeded")
def test_a_step_of_another_curator_is_refused_before_its_charge(tmp_path: Path) -> None:
    """Analysts know a data set by it: its steps would be those of two tables."""
    table, context = visits(), Context.default()
    (first,) = catch_up(written(tmp_path, "2026-Q1-01", table))
    other = {"contract": {"curator": "Another office"}}
    with raises(families.TERMS, changed=("curator",), curator=first.manifest.dataset.curator):
        replay(context, planned(written(tmp_path, "2026-Q1-02", table, **other)))
    assert len(context.ledger.charges("toy")) == 1
    catch_up(written(tmp_path, "2026-Q1-02", table, contract={"title": "Another title"}))


@pytest.mark.usefixtures("seeded")
def test_series_that_differ_in_lag_alone_are_two_series(tmp_path: Path) -> None:
    """Their noise is independent."""
    table, keys = visits(), {"mechanism": {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}}
    bundles = [
        catch_up(written(tmp_path, "2026-Q1-01", table, cumulative=series, **keys))[0]
        for series in ({"every": "month"}, {"every": "month", "lag": 3})
    ]
    assert len({each.manifest.series for each in bundles}) == 2


@pytest.mark.parametrize("normalisation", ["unit", CLIP], ids=["unit", "clip"])
@pytest.mark.usefixtures("seeded")
def test_steps_without_rows_are_published(tmp_path: Path, normalisation: Any) -> None:
    """Under replace-one as well, where their numbers of rows, 0, are public."""
    table = visits()[months(visits()) == 3]
    keys = {"normalisation": normalisation, "contract": {"neighbours": "replace-one"}}
    *_, third = catch_up(written(tmp_path, "2026-Q1-03", table, **keys))
    assert third.manifest.cumulative.rows == (0, 0, len(table))
