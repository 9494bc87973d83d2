"""``gramercy estimate``: estimate from a published release."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from gramercy import estimators
from gramercy.api.release import Release
from gramercy.archive.bundles.estimate_bundle import read_estimate
from gramercy.cli import flow_runner
from gramercy.cli.choices import check_choice
from gramercy.cli.options import AsJson, ReleaseName, completed, split_name
from gramercy.cli.output import terminal
from gramercy.cli.output.estimate_text import estimate_facts, print_estimate
from gramercy.estimators import Estimator
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.estimable import check_estimable, check_group, check_other_releases
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse


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
    if json:
        facts = {"release": release.id, "estimate": done, "path": path, "report": page}
        tables = estimate_facts(read_estimate(sealed))
        terminal.print_json({**facts, "problems": failures, "tables": tables})
    else:
        terminal.say("Estimated: ", terminal.bold(done), f", without further privacy cost\n{path}")
        terminal.say(f"Report: {page or 'none'}")
        print_estimate(read_estimate(sealed))


def _chosen(estimator: str, settings: list[str]) -> Estimator:
    """The estimator with these settings."""
    check_choice("--estimator", estimator, estimators.registry)
    pairs: list[tuple[str, object]] = [("name", estimator), *map(_setting, settings)]
    keys = [key for key, _ in pairs]
    if repeated := [key for key in keys if keys.count(key) > 1]:
        raise families.USAGE(
            "--set: '{setting}' is given twice.",
            "Give it once.",
            setting=repeated[0],
        )
    facts = dict(pairs)
    return parse(estimators.registry[estimator], facts, "estimate", RequestError)


def _setting(text: str) -> tuple[str, bool | float | str]:
    """``key=value``; the value is a number, true, false or text, and in quotes always text."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise families.USAGE(
            "--set: '{setting}' is not of the form KEY=VALUE.",
            "Write key=value.",
            setting=text,
        )
    if value in {"true", "false"}:
        return key, value == "true"
    if value[0] in "'\"" and value[-1] == value[0]:
        return key, value[1:-1]
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return key, number(value)
    return key, value
