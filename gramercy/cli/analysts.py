"""Commands of those who read what was published."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from gramercy.api.release import Release
from gramercy.cli import running
from gramercy.cli.options import AsJson
from gramercy.cli.options import archive as archive_here
from gramercy.cli.output import view
from gramercy.common.home import Home
from gramercy.schemas.errors import GramercyError, Invalid, RequestError


def list_(json: AsJson = False) -> None:
    """List the releases of the archive.

    Example: gramercy list --json
    """
    from gramercy.application.verification import known_releases
    from gramercy.ledger import Ledger

    home = Home.default()
    ledger = Ledger.known(home)
    found = [_listing(*each) for each in known_releases(archive_here(), ledger)]
    if json:
        view.as_json(found)
        return
    for each in found:
        if "error" in each:
            view.say(view.bold(each["release"]), "  ", each["error"])
        else:
            words = f"epsilon {each['epsilon']:.4g} at delta {each['delta']:g}"
            how = f"{each['mechanism']}, {each['normalisation']}"
            told = f"  {words}  {how}  {each['published']}  {each['title']}"
            gone = f"  withdrawn: {each['withdrawn']}" if each["withdrawn"] else ""
            view.say(view.bold(each["release"]), told, Text(gone, style="red"))
    if not found:
        view.say(f"No release in {archive_here().where} yet.")


def show(
    name: Annotated[str, typer.Argument(metavar="RELEASE", help="DATASET/RELEASE.")],
    json: AsJson = False,
) -> None:
    """Show what a release is, what it guarantees, and its noise.

    Example: gramercy show clinic/2026-11-r1
    """
    found = _release(name)
    if json:
        view.as_json(found.manifest.model_dump(mode="json"))
        return
    facts = found.manifest
    view.say(view.bold(facts.dataset.title), f", version {facts.dataset.version}")
    view.say(facts.card["statement"] + "\n")
    sd = f" ± {facts.rows.sd:.0f}" if facts.rows.status == "noisy" else ""
    view.facts_table(
        found.id,
        {
            "curator": facts.dataset.curator,
            "published": facts.published,
            "table": f"{facts.rows.value:.0f}{sd} {facts.count_key} ({facts.rows.status}) x "
            f"{len(facts.names)} columns",
            "neighbours": facts.card["neighbours"],
            "rows were": facts.card["pre_processing"],
            "mechanism": facts.card["mechanism"],
            "guarantee": view.guarantee_text(facts.guarantee.model_dump()),
            "zero-concentrated": view.concentrated_text(facts.guarantee),
            "best attacker": view.attacker_text(facts.guarantee.power, facts.unit),
            "noise": f"sd {facts.noise.sd_off_diagonal:.3g} off the diagonal, "
            f"{facts.noise.sd_diagonal:.3g} on it"
            + (f", {facts.noise.mean:.3g} on average there" if facts.noise.mean else ""),
            "estimates": ", ".join(found.estimates) or "none",
            "report": found.shown(page) if (page := found.report) else "none",
            "signed by": found.signed_by,
            "withdrawn": found.withdrawn or "no",
            "where": found.where,
        },
    )


def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RELEASE]...", help="DATASET/RELEASE, or DATASET; default: all."),
    ] = None,
    archive: Annotated[
        str | None, typer.Option(help="A folder or URL, instead of this home's own archive.")
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(help="Public key of a curator; repeatable. All must be signed by one."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Recompute everything a release states, and name the file that is wrong.

    Example: gramercy verify clinic --archive copy --key curator.pub
    """
    from gramercy.application.verification import to_verify, verify_release
    from gramercy.archive.remote import open_archive
    from gramercy.archive.signing_keys import read_public
    from gramercy.ledger import Ledger

    home = Home.default()
    store = open_archive(archive) if archive else archive_here()
    if key:
        store = replace(store, trusted=frozenset(map(read_public, key)))
    ledger = Ledger.known(home) if archive is None else None
    done = []
    for dataset, name in to_verify(store, ledger, names or []):
        facts: dict[str, Any] = {"release": f"{dataset}/{name}"}
        try:
            verified = verify_release(store, dataset, name, ledger)
            facts["checks"], facts["unchecked"] = list(verified.checks), list(verified.unchecked)
        except Invalid as error:  # one damaged bundle hides no other
            facts["error"] = str(error)
        done.append(facts)
        if not json:
            view.verified_text(facts)
    if json:
        view.as_json(done)
    if any("error" in facts for facts in done):
        sys.exit(Invalid.exit_code)


def estimate(
    name: Annotated[str, typer.Argument(metavar="RELEASE", help="DATASET/RELEASE.")],
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
    from gramercy import estimators
    from gramercy.schemas.model import parse

    found = _release(name)
    if estimator not in estimators.registry:
        known = ", ".join(estimators.registry)
        raise RequestError(f"--estimator: no '{estimator}'.", f"Known: {known}.")
    asked = [*([f"penalty={penalty}"] if penalty else []), *(settings or [])]
    pairs = [("name", estimator), *map(_setting, asked)]
    facts = dict(pairs)
    if len(facts) < len(pairs):
        raise RequestError("--set: a setting is given twice.", "Give it once.")
    chosen = parse(estimators.registry[estimator], facts, "estimate", RequestError)
    done, page, problems = running.estimate(found.id, chosen)
    for problem in problems:
        view.say(Text("It is estimated, but: ", style="yellow"), problem, to=view.err)
    path = found.shown(found.path.parent / "estimates" / done)
    if json:
        facts = {
            "release": found.id,
            "estimate": done,
            "path": path,
            "report": page,
            "problems": problems,
        }
        view.as_json(facts)
    else:
        view.say("Estimated: ", view.bold(done), f", no further privacy cost\n{path}")
        view.say(f"Report: {page or 'none'}")


def mechanisms(json: AsJson = False) -> None:
    """List the mechanisms, with one line each.

    Example: gramercy mechanisms
    """
    from gramercy.mechanisms import registry

    known = [each.about() for each in registry.values()]
    if json:
        view.as_json(known)
    else:
        view.mechanisms_text(known)


def _setting(text: str) -> tuple[str, Any]:
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


def _release(name: str) -> Release:
    dataset, _, release_id = name.partition("/")
    return Release(archive_here(), dataset, release_id)


def _listing(dataset: str, release: str) -> dict[str, Any]:
    try:
        each = Release(archive_here(), dataset, release)
    except GramercyError as error:  # one damaged bundle hides no other
        return {"release": f"{dataset}/{release}", "error": str(error)}
    return {
        "release": each.id,
        "title": each.manifest.dataset.title,
        "published": each.manifest.published,
        "epsilon": each.guarantee.epsilon,
        "delta": each.guarantee.delta,
        "mu": each.guarantee.mu,
        "mechanism": each.manifest.mechanism["name"],
        "normalisation": view.normalisation(each.manifest.normalisation),
        "path": each.where,
        "withdrawn": each.withdrawn,
    }
