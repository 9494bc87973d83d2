"""Tables of a release draw themselves: facts of their figures."""

from __future__ import annotations

import pickle
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.api.frames import NumbersOverTime
from gramercy.api.groups import Groups
from gramercy.api.release import Release
from gramercy.schemas import families
from tests.support.caveat_release import publish_caveats
from tests.support.factories import home_at
from tests.support.problems import raises
from tests.support.survey import survey_release

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:More than 20 figures")]


@pytest.fixture(scope="module")
def with_histograms(tmp_path_factory: pytest.TempPathFactory) -> Release:
    place = tmp_path_factory.mktemp("caveats")
    with home_at(place / "home") as home:
        publish_caveats(place)
    return gramercy.open(home / "archive").latest("toy")


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Release:
    place = tmp_path_factory.mktemp("groups")
    with home_at(place / "home") as home:
        survey_release(place, by="ward")
    return gramercy.open(home / "archive").latest("toy")


def test_histograms_have_equal_steps_of_nearly_all_rows(with_histograms: Release) -> None:
    marginals = with_histograms.marginals
    for column in ("fine", "first", "tail"):
        bars = marginals.plot(column).patches
        widths = [each.get_width() for each in bars]
        assert widths == pytest.approx([widths[0]] * len(widths))
        present = marginals.loc[(marginals["column"] == column) & marginals["lower"].notna()]
        drawn = sum(each.get_height() for each in bars)
        assert drawn == pytest.approx(0.99 * present["share"].sum(), abs=0.002)
    levels = marginals.plot("ward")
    assert [x.get_text() for x in levels.get_yticklabels()] == [*"ABC", "(others and missing)"]
    with raises(families.UNKNOWN_NAME, column="fist"):
        marginals.plot("fist")


def test_quantiles_are_drawn_in_their_unit(with_histograms: Release) -> None:
    ax = plt.subplots()[1]
    found = with_histograms.quantiles()
    assert found.plot("tail", ax) is ax
    own = found[found["column"] == "tail"]
    assert np.ravel([x.get_xdata() for x in ax.lines[:1]]) == pytest.approx(own["value"])
    assert ax.get_xlabel() == "tail"
    assert type(found.head()) is pd.DataFrame
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(found)), pd.DataFrame(found))


def test_means_of_groups_have_a_colour_each(grouped: Release) -> None:
    means = grouped.groups.means
    drawn = means.plot()
    legend = [text.get_text() for text in drawn.get_legend().get_texts()]
    known = [name for name in means.index if means.loc[name].notna().any()]
    assert legend == known
    assert [x.get_text() for x in drawn.get_yticklabels()] == list(means.columns)
    one = means.plot("income")
    shown = [x.get_text().removesuffix(" (unknown)") for x in one.get_yticklabels()]
    assert shown == list(means.index)
    lower, upper = grouped.groups["A"].means.interval()
    (first, *_) = one.collections[0].get_segments()
    assert first[:, 0] == pytest.approx([lower["income"], upper["income"]])
    for wrong in ("incom", 5):
        with raises(families.UNKNOWN_NAME, column=str(wrong)):
            means.plot(wrong)
    with raises(families.ESTIMATE):
        Groups("toy", {}).means.plot()


def test_matrices_have_a_title_a_colour_bar_and_a_legend(with_histograms: Release) -> None:
    correlation = with_histograms.correlation
    drawn = correlation.plot()
    assert drawn.get_title() == "Correlation"
    (_, bar) = drawn.figure.axes
    assert "uncertain" in [text.get_text() for text in bar.get_legend().get_texts()]
    assert [x.get_text() for x in drawn.get_xticklabels()] == list(correlation.columns)


def test_names_that_are_mathematics_for_matplotlib_are_drawn(tmp_path: Path) -> None:
    lines = {
        "period": ["2025", "2026", "2027", "2028"],
        "kind": "correlation",
        "column": "$X_{$",
        "other": "b",
        "estimate": [0.1, np.nan, 0.3, 0.5],
        "lower": [0.0, np.nan, 0.2, -np.inf],
        "upper": [0.2, np.nan, 0.4, np.inf],
    }
    frame = NumbersOverTime(pd.DataFrame(lines))
    drawn = frame.plot("$X_{$", "b")
    assert "$X_{$" in drawn.get_title()
    drawn.figure.savefig(tmp_path / "figure.png")
    assert drawn.lines[0].get_ydata() == pytest.approx([0.1, 0.3])
    assert drawn.get_xlabel() == "period"
    for column, other in (("b", "c"), ("c", "")):
        with raises(families.UNKNOWN_NAME, column="c"):
            frame.plot(column, other)
