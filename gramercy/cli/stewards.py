"""Commands of those who publish."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from gramercy.api.release import Release
from gramercy.cli import running
from gramercy.cli.options import AsJson, RequestPath, archive
from gramercy.cli.output import view
from gramercy.common.home import Home
from gramercy.schemas.errors import RequestError

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
NewCharge = Annotated[
    bool, typer.Option("--new-charge", help="Pay again after an interrupted release.")
]


def demo() -> None:
    """Publish one release of scikit-learn's breast cancer table, end to end.

    Example: gramercy demo
    """
    from gramercy.application.demo import lay_out
    from gramercy.application.internal_record import page
    from gramercy.application.request_model import read_request
    from gramercy.archive.store import INDEX

    path = lay_out(Home.default())
    view.say(
        "A clinic publishes the second moments of 30 measurements of 569 patients.\n"
        "Its table, contract and request are in ",
        view.bold(str(path.parent)),
        ".\n",
    )
    asked = running.today(read_request(path))
    _show_plan(asked)
    facts = running.publish(asked)
    release = Release(archive(), *facts["release"].split("/"))
    view.panel(
        "Released before; nothing was charged" if facts["replayed"] else "Released",
        {
            "What": f"the noisy and the denoised second moment, {release.id}",
            "Guarantee": release.manifest.card["statement"],
            "Where": str(release.path),
            "Report": facts["report"] or "none",
            "Catalogue": archive().shown(archive().root / INDEX),
            "For you": f"{page(*release.id.split('/'))} (internal: never publish it)",
        },
        "",
        "Try next",
        f"  {_beside('gramercy')} show {release.id}",
        f"  {_beside('gramercy')} verify {release.id}",
        f"  {_beside('gramercy')} budget {release.manifest.dataset.id}",
        f"  {_beside('python')}",
        "  >>> import gramercy",
        f"  >>> gramercy.open('{archive().root}')['{release.id}'].denoised",
    )


def plan(
    request: RequestPath,
    compare: Annotated[
        bool, typer.Option("--compare", help="Rank all mechanisms by their expected error.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write all of it as a page, too.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what a release would do: noise, guarantee, error, budget. Reads no data.

    Example: gramercy plan request.yaml --compare --page plan.html
    """
    from gramercy.application.planning import make_plan, outlook
    from gramercy.application.request_model import read_request
    from gramercy.cli.output.page_file import check_page, write_page_of
    from gramercy.ledger import Ledger

    asked = running.today(read_request(request))
    if page is not None:
        from gramercy.application.forecast import page_of

        check_page("--page", page)
        worked_out = make_plan(asked)
        with view.doing("working out the errors", json):
            html = page_of(worked_out, outlook(worked_out, Ledger.of(Home.default())))
        write_page_of("--page", page, html)
    if compare:
        from gramercy.application.ranking import compare as ranking

        offers, declined = ranking(asked)
        if json:
            view.as_json(view.ranking_facts(offers, declined, asked.mechanism.delta))
        else:
            view.ranking_text(asked, offers, declined)
    else:
        _show_plan(asked, json)
    if page is not None:
        view.say(f"Page: {page}", to=view.err if json else view.out)


def release(
    request: RequestPath,
    yes: Yes = False,
    new_charge: NewCharge = False,
    json: AsJson = False,
) -> None:
    """Publish a release, or return the one that the same request published before.

    Example: gramercy release request.yaml --yes
    """
    _publish(request, yes, new_charge, json)


def randomize(
    request: RequestPath, yes: Yes = False, new_charge: NewCharge = False, json: AsJson = False
) -> None:
    """Make one noisy report of every row, where the rows are: for the mechanism 'local'.

    Example: gramercy randomize request.yaml --yes
    """
    from gramercy.application.request_model import read_request

    if read_request(request).mechanism.name != "local":
        raise RequestError(f"{request}: asks for another mechanism.", "Write 'name: local'.")
    _publish(request, yes, new_charge, json)


def aggregate(
    request: RequestPath,
    reports: Annotated[
        list[Path],
        typer.Argument(metavar="REPORTS...", help="Releases of 'gramercy randomize': folders."),
    ],
    yes: Yes = False,
    new_charge: NewCharge = False,
    json: AsJson = False,
) -> None:
    """Publish the average of noisy reports from one or more sources.

    Example: gramercy aggregate request.yaml north/release south/release
    """
    _publish(request, yes, new_charge, json, [str(path.absolute()) for path in reports])


def _publish(
    request: Path, yes: bool, new_charge: bool, json: bool, reports: list[str] | None = None
) -> None:
    from gramercy.application.internal_record import page, recall
    from gramercy.application.request_model import read_request

    averaging = reports is not None
    asked = running.today(read_request(request))
    if new_charge:
        asked = asked.model_copy(update={"new_charge": _interrupted(asked, averaging)})
    if not json:
        _show_plan(asked, averaging=averaging)
    if not yes:
        if not sys.stdin.isatty():
            raise RequestError("Nobody is there to be asked.", "Add --yes to publish.")
        typer.confirm("Publish? A charge is never refunded.", abort=True, err=True)
    facts = running.publish(asked, reports)
    view.steward_notes(recall(*facts["release"].split("/")))
    for problem in facts["problems"]:
        view.say(Text("It is published, but: ", style="yellow"), problem, to=view.err)
    if json:
        view.as_json(facts)
        return
    words = "Published before, nothing charged" if facts["replayed"] else "Published"
    view.say(f"{words}: ", view.bold(facts["release"]), f"\n{facts['path']}")
    view.say(f"Report: {facts['report'] or 'none'}")
    if reports is None:
        view.say(f"For you alone: {page(*facts['release'].split('/'))}", to=view.err)


def budget(
    dataset: Annotated[str | None, typer.Argument(help="One data set; default: all.")] = None,
    raise_to: Annotated[
        tuple[float, float] | None,
        typer.Option("--raise", metavar="EPSILON DELTA", help="Raise the budget."),
    ] = None,
    lower_to: Annotated[
        tuple[float, float] | None,
        typer.Option("--lower", metavar="EPSILON DELTA", help="Lower it; takes nothing back."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="REQUEST", help="Show what this release would leave, too."),
    ] = None,
    moved: Annotated[
        bool, typer.Option("--moved", help="The ledger was moved here, or its archive is lost.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger.")] = "",
    json: AsJson = False,
) -> None:
    """Show what was spent and what remains; or change a budget, for a stated reason.

    Example: gramercy budget clinic --raise 4 1e-6 --reason "board, 3 May"
    """
    from gramercy.ledger import Ledger
    from gramercy.schemas.contract import Budget
    from gramercy.schemas.model import parse

    asked = {"--raise": raise_to, "--lower": lower_to, "--moved": moved, "--plan": plan}
    if len(given := [name for name, value in asked.items() if value]) > 1:
        raise RequestError(f"{' and '.join(given)}: one at a time.", "Give the command twice.")
    known = Ledger.known(Home.default())
    if known is None and not plan and not dataset:
        if json:
            view.as_json([])
        else:
            view.say("No data set is registered yet: a first release registers it.")
        return
    ledger = known or Ledger.of(Home.default())
    if moved:
        ledger.move(reason)
    if plan is not None:
        _show_budget_with(plan, ledger, json)
        return
    if change := raise_to or lower_to:
        if dataset is None:
            raise RequestError("Which data set's budget?", f"Name it before {given[0]}.")
        named = dict(zip(("epsilon", "delta"), change, strict=True))
        wanted = parse(Budget, named, given[0], RequestError)
        ledger.change_budget(dataset, wanted, reason, lower=lower_to is not None)
    names = [dataset] if dataset else ledger.datasets()
    shown = [each for name in names for each in _budgets(ledger, name)]
    if json:
        view.as_json([view.statement_facts(*each) for each in shown])
        return
    for each in shown:
        view.statement_text(*each)
    if not names:
        view.say("No data set is registered yet: a first release registers it.")


def _budgets(ledger: Any, dataset: str) -> list[tuple[Any, ...]]:
    """What a data set has spent: one statement, or one for every calendar year of its data."""
    from gramercy.ledger.sources import sharing

    raises, charges = ledger.raises(dataset), ledger.charges(dataset)
    shared = sharing(ledger.sources(), dataset)
    return [
        (dataset, each, raises, [c for c in charges if c.window == each.window], shared)
        for each in ledger.statements(dataset)
    ]


def _show_budget_with(request: Path, ledger: Any, json: bool) -> None:
    from gramercy.application.planning import make_plan, outlook
    from gramercy.application.request_model import read_request

    worked_out = make_plan(running.today(read_request(request)))
    dataset, seen = worked_out.contract.id, outlook(worked_out, ledger)
    if json:
        view.as_json(view.plan_facts(worked_out, seen))
        return
    registered = dataset in ledger.datasets()
    raises, charges = (ledger.raises(dataset), ledger.charges(dataset)) if registered else ((), ())
    shown = [each for each in charges if each.window == seen.before.window]
    replayed = seen.answered if seen.answered and seen.answered.answers else None
    planned = None if replayed else worked_out.guarantee
    view.statement_text(dataset, seen.before, raises, shown, seen.shared, planned)
    if replayed:
        view.say(f"published already, as {replayed.release}: it would cost nothing")


def withdraw(
    name: Annotated[str, typer.Argument(metavar="RELEASE", help="DATASET/RELEASE.")],
    reason: Annotated[str, typer.Option(help="Why; public, in the catalogue.")] = "",
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Mark a bad release in the catalogue. It stays readable, and its charge stays spent.

    Example: gramercy withdraw clinic/2026-11-r1 --reason "wrong table"
    """
    from gramercy.application.catalogue_pages import write_site
    from gramercy.application.withdrawal import withdraw as withdraw_release
    from gramercy.ledger import Ledger

    release = Release(archive(), *_split(name))
    if not yes:
        if not sys.stdin.isatty():
            raise RequestError("Nobody is there to be asked.", "Add --yes to withdraw it.")
        typer.confirm(f"Withdraw {release.id}? Nothing is refunded.", abort=True, err=True)
    place = withdraw_release(*_split(release.id), reason)
    gone = Release(archive(), *_split(name))
    where = gone.shown(place)
    problems: list[str] = []
    with running.noted(problems):  # everybody should see it
        write_site(archive(), Ledger.known(Home.default()), _split(gone.id))
    for problem in problems:
        view.say(Text("It is withdrawn, but: ", style="yellow"), problem, to=view.err)
    if json:
        facts = {"release": gone.id, "withdrawn": gone.withdrawn, "path": where}
        view.as_json({**facts, "problems": problems})
    else:
        view.say("Withdrawn: ", view.bold(gone.id), f": {gone.withdrawn}\n{where}")


def _split(name: str) -> tuple[str, str]:
    dataset, _, release = name.partition("/")
    return dataset, release


def serve(
    requests: Annotated[
        list[Path] | None, typer.Argument(metavar="[REQUEST]...", help="Requests to schedule.")
    ] = None,
    cron: Annotated[str, typer.Option(help="When they run.")] = "0 6 * * 1",
    timezone: Annotated[
        str | None, typer.Option(help="Of the schedule; default: the request's, else UTC.")
    ] = None,
    port: Annotated[int, typer.Option(help="Of the Prefect server.")] = 4200,
    pool: Annotated[
        str, typer.Option(help="Work pool; of your own, on a server that others use too.")
    ] = "gramercy",
) -> None:
    """Run a Prefect server, the deployments and a worker on this machine, until Ctrl-C.

    Example: gramercy serve request.yaml --cron "0 6 * * 1" --timezone Europe/Berlin
    """
    from gramercy.application.request_model import read_request
    from gramercy.cli.prefect_services import serve as run

    run([read_request(path) for path in requests or []], cron, timezone, port, pool)


def _show_plan(asked: Any, json: bool = False, *, averaging: bool = False) -> None:
    from gramercy.application.planning import make_plan, outlook
    from gramercy.ledger import Ledger

    worked_out = make_plan(asked, averaging=averaging)
    seen = outlook(worked_out, Ledger.of(Home.default()))
    if json:
        view.as_json(view.plan_facts(worked_out, seen))
    else:
        view.plan_text(worked_out, seen)


def _interrupted(asked: Any, averaging: bool) -> str | None:
    """The release that was charged for this request and then interrupted."""
    from gramercy.application.planning import make_plan, outlook
    from gramercy.ledger import Ledger

    charge = outlook(make_plan(asked, averaging=averaging), Ledger.of(Home.default())).answered
    return charge.release if charge is not None and charge.state != "published" else None


def _beside(program: str) -> str:
    """A program of the environment that this one runs in, as one would type it here."""
    path = Path(sys.argv[0]).absolute().parent / program
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
