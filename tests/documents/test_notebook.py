"""docs/analyses/tutorial.ipynb runs from top to bottom, and prints the shown output."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes

from gramercy.api.regression import RegressionResult
from gramercy.common.plotting import Picture
from tests.support.documents import ROOT, ApproximateOutput
from tests.support.factories import run_release
from tests.support.survey import survey_release

NOTEBOOK = ROOT / "docs" / "analyses" / "tutorial.ipynb"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TOLERANCE = 0.15  # of its numbers: ten standard deviations of the noise or more
LINK = re.compile(r"\]\(([^)]+)\)")


def cells(kind: str) -> list[dict[str, Any]]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def run_cell(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, followed by the text of its last expression; and its value."""
    tree, value = ast.parse(source), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, NOTEBOOK.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)
    shown = "" if value is None else f"{value!r}\n"
    return printed.getvalue() + shown, value


@pytest.fixture
def two_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The survey's archive, where the first cell expects it."""
    survey_release(tmp_path, epsilon=16.0, rows=10_000)
    request = tmp_path / "request.yaml"
    request.write_text(request.read_text().replace("epsilon: 16.0", "epsilon: 12.0"))
    run_release(request)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("two_releases")
def test_notebook_runs_from_top_to_bottom() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    checker, compared, drawn = ApproximateOutput(TOLERANCE), 0, 0
    with mpl.rc_context({"backend": "Agg"}):
        for cell in cells("code"):
            source = "".join(cell["source"])
            got, value = run_cell(source, names)
            if hasattr(value, "_repr_html_"):
                assert value._repr_html_()
            drawn += isinstance(value, Axes | Picture)
            for output in cell["outputs"]:
                want = "".join(output["text"])
                same = checker.check_output(want, got, OPTIONS)
                assert same, f"{source}\nshows\n{want}\nand it prints\n{got}"
                compared += 1
        plt.close("all")
    assert drawn == 5
    assert compared >= 12
    check_statements(names)


def check_statements(names: dict[str, Any]) -> None:
    """What the text says about the survey and the pool."""
    release, pool = names["release"], names["pool"]
    income = release.describe(by="ward").groups["mean"].xs("income", level="column")
    assert (income["A"] - income[["B", "C"]]).sub(8).abs().max() < 1
    correlation = release.correlation.abs()
    assert correlation.loc["income", "hours"] > 0.5
    assert correlation.loc["age", ["income", "hours"]].max() < 0.1
    fitted: RegressionResult = release.regression("income ~ age + hours + ward")
    truth = {"hours": 1.1, "age": 0.0, "ward=B": -8.0, "ward=C": -8.0}
    for name, value in truth.items():
        assert abs(fitted.params[name] - value) < 8 * fitted.bse[name], name
    first = release.pca().components.loc["PC1"]
    assert abs(first["income"] - first["hours"]) < 0.2
    assert abs(first["age"]) < 0.2
    edges = names["graph"].to_networkx()
    assert edges.has_edge("income", "hours")
    assert pool.noise.sd_off_diagonal < release.noise.sd_off_diagonal


def test_links_of_the_notebook_resolve() -> None:
    text = "".join("".join(cell["source"]) for cell in cells("markdown"))
    links = LINK.findall(text)
    assert len(links) >= 6
    for link in links:
        assert (NOTEBOOK.parent / link).resolve().exists(), link
    for method in ("describe", "regression", "pca", "crosstab", "synthesize", "pool", "plot"):
        assert any(f".{method}(" in "".join(cell["source"]) for cell in cells("code")), method


def test_cells_print_as_a_notebook_shows_them() -> None:
    names: dict[str, Any] = {}
    assert run_cell("x = 2\nprint(x)\nx + 1", names) == ("2\n3\n", 3)
    assert run_cell("y = x", names) == ("", None)
    with pytest.raises(ZeroDivisionError):
        run_cell("x / 0", names)
