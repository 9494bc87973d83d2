"""``gramercy estimate``: estimate from a published release."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from gramercy import estimators
from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import EstimateBundle, read_estimate, read_release
from gramercy.cli import flow_runner, terminal
from gramercy.cli.options import AsJson, ReleaseName, check_choice, completed, split_name
from gramercy.cli.release_limits import limits_facts
from gramercy.cli.terminal import bold, say
from gramercy.estimators import Estimator
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import check_estimable, check_group, check_other_releases
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError, printable
from gramercy.schemas.model import parse

_ROWS, _EDGES = 20, 10
_EXPONENT = 1e15  # from here on, numbers have an exponent


def estimate(
    name: ReleaseName,
    estimator: Annotated[
        str,
        typer.Option(
            help="Name of the estimator.", autocompletion=completed(lambda: estimators.registry)
        ),
    ] = "ridge",
    penalty: Annotated[
        str, typer.Option(help="A positive number, or a rule such as auto or ebic.")
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Another setting of the estimator; repeatable."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Estimate from a release, at no further privacy cost.

    Gives a precision matrix, a covariance, a graph, intervals or a classifier. docs/estimators.md
    lists the estimators and their settings. The estimate is sealed in the archive, next to its
    release; in Python, release.estimate and release.regression only compute.

    Example: gramercy estimate clinic/2026-11-r1 --estimator graphical-lasso --penalty ebic
    """
    chosen = _chosen(estimator, [*([f"penalty={penalty}"] if penalty else []), *(settings or [])])
    context = Context.default()
    release = Release(context.archive, *split_name(name))
    check_estimable(release.manifest)  # before Prefect starts
    check_group(release.manifest, chosen)
    chosen.check(release.manifest)
    check_other_releases(context.archive, chosen, release.id, release.manifest)
    done, page, failures = flow_runner.estimate(context, release.id, chosen)
    for problem in failures:
        terminal.warn(wordings.later_step_failed("The estimate is complete", problem))
    sealed = context.archive.estimate(*split_name(release.id), done)
    path = release.shown(sealed)
    found = (release if chosen.group is None else release.groups[chosen.group]).warnings
    if json:
        facts: dict[str, Any] = {
            "release": release.id,
            "estimate": done,
            "path": path,
            "report": page,
        }
        tables = estimate_facts(read_estimate(sealed))
        facts |= {"problems": failures, "tables": tables}
        rows = read_release(release.path).rows_of(chosen.group)
        terminal.print_json(facts | limits_facts(rows, found))
    else:
        terminal.say("Estimated: ", terminal.bold(done), f", without further privacy cost\n{path}")
        terminal.say(f"Report: {page or 'none'}")
        bundle = read_estimate(sealed)
        print_estimate(bundle)
        if found.kinds and "caveats" not in bundle.tables:
            shown = ", ".join(f"{name} ({kinds})" for name, kinds in found.kinds.items())
            terminal.say(f"Caveats: {printable(shown)}; gramercy show {release.id} has their words")


def _chosen(estimator: str, settings: list[str]) -> Estimator:
    """The estimator with these settings."""
    check_choice("--estimator", estimator, estimators.registry)
    pairs: list[tuple[str, object]] = [("name", estimator), *map(_setting, settings)]
    keys = [key for key, _ in pairs]
    if repeated := [key for key in keys if keys.count(key) > 1]:
        raise families.USAGE(
            "--set: '{setting}' is given twice.", "Give it once.", setting=repeated[0]
        )
    facts = dict(pairs)
    return parse(estimators.registry[estimator], facts, "estimate", RequestError)


def _setting(text: str) -> tuple[str, bool | float | str]:
    """``key=value``; the value is a number, true, false or text, and in quotes always text."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise families.USAGE(
            "--set: '{setting}' is not of the form KEY=VALUE.", "Write key=value.", setting=text
        )
    if value in {"true", "false"}:
        return key, value == "true"
    if value[0] in "'\"" and value[-1] == value[0]:
        return key, value[1:-1]
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return key, number(value)
    return key, value


def print_estimate(bundle: EstimateBundle) -> None:
    """Print the first rows of every table; the edges where there is no table."""
    for name, table in bundle.tables.items():
        _print_table(name.replace("_", " "), table, _ROWS)
    if not bundle.tables and bundle.edges is not None:
        edges, p = _strongest_first(bundle.edges, bundle), len(bundle.manifest.names)
        title = f"{len(edges)} edges between {p * (p - 1) // 2} pairs of columns"
        _print_table(title + ", strongest first" * (len(edges) > 1), edges, _EDGES)


def estimate_facts(bundle: EstimateBundle) -> dict[str, Any]:
    """The tables, and the edges where there is no table, as plain data: a list of rows each."""
    tables = dict(bundle.tables)
    if not tables and bundle.edges is not None:
        tables["edges"] = _strongest_first(bundle.edges, bundle)
    return {
        name: table.astype(object)
        .where(table.notna(), None)
        .replace([np.inf, -np.inf], None)
        .to_dict("records")
        for name, table in tables.items()
    }


def _strongest_first(matrix: NDArray[np.float64], bundle: EstimateBundle) -> pd.DataFrame:
    """The edges of a graph, from their matrix."""
    i, j = np.nonzero(np.triu(matrix, 1))
    weights, names = matrix[i, j], np.array(bundle.manifest.names, dtype=object)
    edges = pd.DataFrame({"row": names[i], "col": names[j], "weight": weights})
    return edges.iloc[np.argsort(-np.abs(weights), kind="stable")]


def _print_table(title: str, rows: pd.DataFrame, most: int) -> None:
    say(bold(title))
    if rows.empty:
        return
    for part in _parts_that_fit(rows.head(most)):
        terminal.out.print(part)
    if len(rows) > most:
        say(f"and {len(rows) - most} more rows")


def _parts_that_fit(rows: pd.DataFrame) -> Iterator[Table]:
    """Tables of as many columns as fit, each after the columns of text that come first."""
    numbers = [k for k, kind in enumerate(rows.dtypes) if kind.kind in "fiub"]
    first = numbers[0] if numbers else rows.shape[1]
    names, start = list(range(first)), first
    while True:
        end = rows.shape[1]
        while end > start + 1 and not _fits(_table(rows, [*names, *range(start, end)])):
            end -= 1
        yield _table(rows, [*names, *range(start, end)])
        start = end
        if start >= rows.shape[1]:
            return


def _table(rows: pd.DataFrame, columns: list[int]) -> Table:
    chosen = rows.iloc[:, columns]
    headers = (Column(Text(str(name)), overflow="fold") for name in chosen.columns)
    table = Table(*headers, box=None)
    for cells in chosen.itertuples(index=False):
        table.add_row(*(Text(_cell(cell)) for cell in cells))
    return table


def _fits(table: Table) -> bool:
    unlimited = terminal.out.options.update(width=1 << 20)
    return Measurement.get(terminal.out, unlimited, table).maximum <= terminal.out.width


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return ""
    return f"{value:.0f}" if 1000 <= abs(value) < _EXPONENT else f"{value:.4g}"
