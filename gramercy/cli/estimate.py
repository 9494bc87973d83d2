"""``gramercy estimate``: one more estimate from a release."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from gramercy import estimators
from gramercy.api.release import Release
from gramercy.application.context import Context
from gramercy.cli import running
from gramercy.cli.options import AsJson, ReleaseName, parts_of
from gramercy.cli.output import terminal
from gramercy.estimators import Estimator
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse


def estimate(
    name: ReleaseName,
    estimator: Annotated[str, typer.Option(help="Which estimator.")] = "ridge",
    penalty: Annotated[str, typer.Option(help="A positive number, or auto.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Another setting; repeatable."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Estimate from a release: a precision matrix, a covariance, a graph, intervals, classes.

    Reads the release alone; costs no privacy. docs/estimators.md lists estimators and settings.

    Example: gramercy estimate clinic/2026-11-r1 --estimator graphical-lasso --penalty ebic
    """
    context = Context.default()
    release = Release(context.archive, *parts_of(name))
    chosen = _chosen(estimator, [*([f"penalty={penalty}"] if penalty else []), *(settings or [])])
    done, page, problems = running.estimate(context, release.id, chosen)
    for problem in problems:
        terminal.warn("It is estimated, but: ", problem)
    path = release.shown(release.path.parent / "estimates" / done)
    if json:
        facts = {"release": release.id, "estimate": done, "path": path, "report": page}
        terminal.as_json({**facts, "problems": problems})
    else:
        terminal.say("Estimated: ", terminal.bold(done), f", no further privacy cost\n{path}")
        terminal.say(f"Report: {page or 'none'}")


def _chosen(estimator: str, settings: list[str]) -> Estimator:
    """The estimator with the settings that are given."""
    if estimator not in estimators.registry:
        known = ", ".join(estimators.registry)
        raise RequestError(f"--estimator: no '{estimator}'.", f"Known: {known}.")
    pairs: list[tuple[str, object]] = [("name", estimator), *map(_setting, settings)]
    facts = dict(pairs)
    if len(facts) < len(pairs):
        raise RequestError("--set: a setting is given twice.", "Give it once.")
    return parse(estimators.registry[estimator], facts, "estimate", RequestError)


def _setting(text: str) -> tuple[str, bool | float | str]:
    """``key=value``, the value a number, true, false, or a text; in quotes a text always."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise RequestError(f"--set: '{text}' is no setting.", "Write --set key=value.")
    if value in {"true", "false"}:
        return key, value == "true"
    if value[0] in "'\"" and value[-1] == value[0]:
        return key, value[1:-1]
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return key, number(value)
    return key, value
