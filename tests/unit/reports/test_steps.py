"""What pages say of a step of a cumulative series."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pytest

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.common.prefix_sums import PrefixSums
from gramercy.reports.reader_notes import Note, verdict_note
from gramercy.reports.release_report import release_page
from gramercy.reports.steps import StepNoise, changed_rows, delays
from gramercy.schemas import families
from gramercy.schemas.facts import CumulativeFacts, EarlierStep, PeriodFacts
from gramercy.schemas.steps import Cumulative
from tests.support.private_release import numeric_columns, privately_scaled


def step_facts(step: int = 5) -> CumulativeFacts:
    days = Cumulative(every="week").series("year", "2026")
    return CumulativeFacts(
        every="week",
        lag=14,
        starts=days.starts,
        step=step,
        weights=tuple(PrefixSums(days.count).weights[step - 1, :step].tolist()),
        draws=(1,) * step,
        earlier=tuple(
            EarlierStep(release=f"{label}-r1", sha256="0" * 64) for label in days.labels[: step - 1]
        ),
    )


@pytest.fixture(scope="module")
def plain() -> ReleaseBundle:
    stream = np.random.default_rng(5)
    cells = stream.normal(size=(60_000, 3)) + stream.normal(size=(60_000, 1))
    columns = numeric_columns([(-20.0, 20.0)] * 3)
    return privately_scaled(cells, columns, 4.0, stream).bundle(stream)


def of_series(bundle: ReleaseBundle, step: int) -> ReleaseBundle:
    facts = bundle.manifest
    year = facts.budget.model_copy(update={"per": "year"})
    dataset = facts.dataset.model_copy(update={"version": f"2026-W{step:02}"})
    changes = {
        "cumulative": step_facts(step),
        "budget": year,
        "period": PeriodFacts(label="2026"),
        "dataset": dataset,
        "software": {"gramercy": "0.1.0"},
    }
    return replace(bundle, manifest=facts.model_copy(update=changes))


def test_shares_of_changed_rows_are_as_stated() -> None:
    week, month, quarter = changed_rows(52, "week")
    assert (week.delay, month.delay, quarter.delay) == (1, 4, 13)
    assert week.added == pytest.approx((0.499, 0.914), abs=0.001)
    assert month.added == pytest.approx((0.272, 0.809), abs=0.001)
    assert quarter.added == pytest.approx((0.152, 0.638), abs=0.001)
    assert week.deleted == pytest.approx((0.501, 0.086), abs=0.001)
    assert delays(3, "week") == [1]
    assert delays(1, "day") == []


def test_noise_of_a_step_is_relative_to_a_release_of_the_same_guarantee() -> None:
    noise = StepNoise.of(step_facts(52).model_copy(update={"starts": step_facts().starts[:53]}))
    found = (noise.so_far, noise.alone, noise.end, noise.otherwise)
    assert found == pytest.approx((1.946, 1.129, 1.946, 7.211), abs=0.003)


def test_days_and_earlier_releases_of_a_step(plain: ReleaseBundle) -> None:
    facts = step_facts(3)
    assert facts.first_day == datetime.date(2026, 1, 1)
    assert facts.last_day == datetime.date(2026, 1, 18)
    manifest = of_series(plain, 3).manifest
    releases = {"2026-W01": "2026-W01-r1", "2026-W02": "2026-W02-r1", "2026-W03": manifest.release}
    assert manifest.releases_of_steps == releases
    assert plain.manifest.releases_of_steps == {}


def test_no_verdict_is_green_where_rows_of_earlier_steps_may_have_changed(
    plain: ReleaseBundle,
) -> None:
    def verdict(bundle: ReleaseBundle) -> Note:
        note = verdict_note(bundle)
        assert note is not None
        return note

    green, first, later = map(verdict, (plain, of_series(plain, 1), of_series(plain, 2)))
    assert (green.level, first.level, later.level) == ("good", "good", "warning")
    assert later.code == families.READING.code
    assert later.facts == green.facts


@pytest.mark.slow
def test_report_links_to_earlier_steps(plain: ReleaseBundle) -> None:
    page = release_page(of_series(plain, 3), [])
    assert page.count('href="../../../2026-W') == 2
    assert "2026-01-18" in page
