"""The estimator ``pool``: its tables, its units, and the settings that it accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gramercy.estimators import registry
from gramercy.estimators.caveats import caveats
from gramercy.estimators.pooling.pool import pool
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.evidence import Evidence, ReleaseEvidence
from gramercy.schemas.facts import BudgetFacts, DatasetFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.normalisation import Clip, Unit
from tests.support.problems import raises
from tests.support.simulated_release import units_of
from tests.support.survey import RADIUS, survey_columns, survey_evidence, survey_table


def release(name: str, evidence: Evidence, version: str = "v1", **facts: Any) -> ReleaseEvidence:
    dataset, _, _ = name.partition("/")
    spec = ReleaseSpec(
        dataset=DatasetFacts(
            id=dataset, title="A survey", curator="A curator", version=version, rows=1000
        ),
        columns=survey_columns(),
        intercept=True,
        neighbours="replace-one",
        privacy_unit="row",
        normalisation=Clip(radius=RADIUS),
        mechanism={"name": "gaussian"},
        budget=BudgetFacts.of(Budget(epsilon=1.0, delta=1e-6)),
    )
    return ReleaseEvidence(name, name, spec.model_copy(update=facts), evidence)


def noisy(sd: float, seed: int, of_table: int = 3, rows: int = 1000) -> Evidence:
    return survey_evidence(survey_table(rows, of_table), sd, seed)


def estimator(*releases: str, **settings: Any) -> Any:
    return registry["pool"](releases=releases, **settings)


def test_a_pool_states_weights_and_errors() -> None:
    releases = [release(f"toy/v1-r{k}", noisy(0.1 * k, k)) for k in (1, 2)]
    made = estimator("toy/v1-r2")
    evidence = made.evidence_of(releases)
    estimate = made.fit(evidence)
    table = estimate.tables["releases"]
    np.testing.assert_allclose(table["weight"], [0.8, 0.2])
    np.testing.assert_allclose(table["noise"], [0.1 / RADIUS**2, 0.2 / RADIUS**2])
    np.testing.assert_allclose(
        table["standard_error"] ** 2, (table["noise"] ** 2 + table["sampling_error"] ** 2)
    )
    assert table["rows"].tolist() == [1000, 1000]
    # Sampling errors of the same rows stay.
    assert estimate.tuning["noise"] == pytest.approx(0.1 * np.sqrt(0.8) / RADIUS**2)
    np.testing.assert_allclose(table["sampling_error"], estimate.tuning["sampling_error"])
    assert estimate.tuning["number_of_rows"] == 1000
    assert estimate.matrix is evidence.repaired
    assert (estimate.matrices["noise_error"] <= estimate.matrices["standard_error"]).all()
    assert {"columns", "levels"} < estimate.tables.keys()


def test_errors_of_disjoint_tables_both_fall() -> None:
    releases = [
        release(f"{name}/v1-r1", noisy(0.05, k, of_table=k)) for k, name in enumerate("abc")
    ]
    estimate = estimator("b/v1-r1", "c/v1-r1").fit(pool(releases, None, units_of_first=True))
    assert estimate.tuning["number_of_rows"] == pytest.approx(3000, rel=0.01)
    for key in ("noise", "sampling_error"):
        fall = estimate.tuning[key] / estimate.tables["releases"][key]
        np.testing.assert_allclose(fall, 1 / np.sqrt(3), rtol=0.01)


def test_a_table_that_was_published_twice_and_another_one() -> None:
    releases = [
        release("a/v1-r1", noisy(0.3, 1)),
        release("b/v1-r1", noisy(0.1, 2, of_table=4)),
        release("a/v1-r2", noisy(0.3, 3)),
    ]
    parts = pool(releases, None).parts
    assert [part.release for part in parts] == [each.name for each in releases]
    assert sum(part.weight for part in parts) == pytest.approx(1)
    assert parts[0].weight == pytest.approx(parts[2].weight)
    assert parts[0].noise == pytest.approx(3 * parts[1].noise)
    together = pool([releases[0], releases[2]], None)
    assert 2 * parts[0].weight == pytest.approx(_weight_of_two_tables(together, releases[1]))


def _weight_of_two_tables(one: Evidence, other: ReleaseEvidence) -> float:
    """The weight of a pool of one table, together with a release of another."""
    first = release("c/v1-r1", replace(one, parts=()))
    return pool([first, other], "disjoint").parts[0].weight


def test_the_first_release_gives_the_units() -> None:
    """Also if its weight is small; means agree with those in any other units."""
    first = release("a/v1-r1", noisy(0.5, 1))
    shifted = [
        column.model_copy(update={"centre": column.centre + 7.0, "scale": column.scale * 2})
        if column is not None and hasattr(column, "centre")
        else column
        for column in first.evidence.columns
    ]
    other = noisy(0.01, 2)
    # The same entries in other units stand for another population.
    second = release("a/v1-r2", replace(other, columns=tuple(shifted), radius=2 * RADIUS))
    in_first, in_largest = (
        pool([first, second], None, units_of_first=of_first) for of_first in (True, False)
    )
    assert in_first.parts[1].weight > 0.98
    assert in_first.columns[1] is not None
    assert in_first.columns[1].centre == first.evidence.columns[1].centre
    assert in_first.radius == RADIUS
    assert in_largest.radius == 2 * RADIUS
    for evidence in (in_first, in_largest):
        units = units_of(evidence)
        moments = units.moments(evidence.raw)
        if evidence is in_first:
            means, covariance = moments.mean, moments.covariance
    np.testing.assert_allclose(moments.mean, means, rtol=1e-8)
    np.testing.assert_allclose(moments.covariance, covariance, rtol=1e-6, atol=1e-8)


def test_releases_that_cannot_be_pooled_are_refused_by_their_facts() -> None:
    one = release("a/v1-r1", noisy(0.1, 1))
    made = estimator("b/v1-r1")
    cases: list[tuple[Any, Any]] = [
        (families.POOL, {"privacy_unit": "person"}),
        (families.POOL, {"intercept": False}),
        (families.POOL, {"columns": survey_columns()[1:]}),
        (families.POOL, {"normalisation": Unit()}),
    ]
    for problem, facts in cases:
        other = release("b/v1-r1", one.evidence, **facts)
        pairs = [(each.name, each.facts) for each in (one, other)]
        with raises(problem, first="a/v1-r1", other="b/v1-r1"):
            made.check_together(pairs)
    made.check_together([("a/v1-r1", one.facts), ("b/v1-r1", release("b/x", one.evidence).facts)])


def test_evidence_of_one_release_is_refused() -> None:
    with raises(families.POOL):
        estimator("a/v1-r1").fit(noisy(0.1, 1))


def test_settings_name_releases() -> None:
    lists = [("a/v1-r1", "b/v1-r1"), "a/v1-r1,b/v1-r1", "[a/v1-r1, b/v1-r1]"]
    made = [registry["pool"].model_validate({"name": "pool", "releases": each}) for each in lists]
    assert len({each.id for each in made}) == 1
    assert made[0].other_releases == ("a/v1-r1", "b/v1-r1")
    assert estimator("a/v1-r1").id != estimator("a/v1-r2").id
    for wrong in ("a", "a/b/c", "../a/v1-r1", "a/", "a b/c"):
        with raises(families.VALUE):
            estimator(wrong)
    with raises(families.KEY):
        estimator()


def differing(*releases: ReleaseEvidence, **settings: Any) -> list[dict[str, Any]]:
    made = estimator(*[each.name for each in releases[1:]], **settings)
    found = made.fit(made.evidence_of(releases)).tables.get("caveats")
    lines = [] if found is None else found.to_dict("records")
    return [each for each in lines if each["kind"] == "tables differ"]


@pytest.mark.slow
def test_tables_that_differ_are_named() -> None:
    """One of them has incomes that are a third higher; releases of one population do not differ."""
    first, like = (release(f"{k}/v1-r1", noisy(0.02, k + 1, of_table=k)) for k in range(2))
    table = survey_table(1000, 5)
    richer = table.assign(income=1.3 * table["income"])
    other = release("2/v1-r1", survey_evidence(richer, 0.02, 3))
    assert differing(first, like) == []
    assert len(differing(first, other)) == 1
    assert len(differing(first, like, other)) == 1
    (found,) = (each for each in caveats(pool([first, other], None)) if each.column is None)
    assert found.notice.facts["column"] == "income"
    # The noise of one table is independent, and its rows are the same.
    assert differing(first, release("0/v1-r2", noisy(0.02, 9, of_table=0))) == []
