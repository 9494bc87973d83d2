"""Differences of graphs in the analysts' interface."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from gramercy.api.graph_difference import GraphDifference
from gramercy.api.groups import GroupRelease, Groups
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence
from tests.support.problems import raises
from tests.unit.estimators.test_graph_difference import table

mpl.use("Agg")


@dataclass(frozen=True)
class Published:
    """What is published about the rows of a group."""

    evidence: Evidence
    manifest: Any = None


def groups(**evidences: Evidence) -> Groups:
    made = {name: GroupRelease("toy", name, Published(own)) for name, own in evidences.items()}  # type: ignore[arg-type]
    return Groups("toy", made)


@pytest.fixture(scope="module")
def found() -> GraphDifference:
    return groups(A=table(1), B=table(2, changed=0.6)).graph_difference("A", "B")


def test_groups_have_their_difference(found: GraphDifference) -> None:
    assert found.discoveries().iloc[0][["row", "column"]].tolist() == ["c0", "c1"]
    lines = found.table()
    assert len(lines) == 15
    assert found.untested == 0
    assert len(found.discoveries()) == (lines["adjusted"] <= 0.05).sum() < 5
    assert list(lines) == [
        *("row", "column", "first", "second", "difference"),
        *("lower", "upper", "p_value", "adjusted"),
    ]
    assert found.precision.loc["c0", "c1"] < 0
    assert np.allclose(found.precision, found.precision.T)


def test_it_is_shown(found: GraphDifference) -> None:
    html = found._repr_html_()
    assert "c1" in html
    assert "<svg" in html
    axes = found.plot()
    assert "A minus B" in axes.get_xlabel()
    assert len(axes.get_yticklabels()) == 15
    assert "c0" in found.graph.html


def test_equal_and_unknown_groups_are_refused() -> None:
    two = groups(A=table(3), B=table(4))
    with raises(families.UNKNOWN_NAME, group="C"):
        two.graph_difference("A", "C")
    with pytest.raises(RequestError):
        two.graph_difference("A", "A")
    nothing = groups(A=table(3), B=replace(table(4), raw=table(4).raw * 0)).graph_difference(
        "A", "B"
    )
    assert nothing.untested == 15
    assert nothing.discoveries().empty
    assert "15 untested" in repr(nothing)
