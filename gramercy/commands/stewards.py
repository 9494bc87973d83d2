"""Commands of those who publish."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from gramercy import running, view
from gramercy.catalogue import Release
from gramercy.commands.common import AsJson, RequestPath, archive
from schemas.errors import RequestError
from schemas.home import Home

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
NewCharge = Annotated[
    bool, typer.Option("--new-charge", help="Pay again after an interrupted release.")
]


def demo() -> None:
    """Publish one release of scikit-learn's breast cancer table, end to end."""
    from gramercy.demo import lay_out
    from tasks.request import read_request
    from tasks.steward import page

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
    json: AsJson = False,
) -> None:
    """Show what a release would do: noise, guarantee, error, budget. Reads no data."""
    from tasks.request import read_request

    asked = running.today(read_request(request))
    if not compare:
        _show_plan(asked, json)
        return
    from tasks.compare import compare as ranking

    offers, declined = ranking(asked)
    if json:
        view.as_json(view.ranking_facts(offers, declined, asked.mechanism.delta))
    else:
        view.ranking_text(asked, offers, declined)


def release(
    request: RequestPath,
    yes: Yes = False,
    new_charge: NewCharge = False,
    json: AsJson = False,
) -> None:
    """Publish a release, or return the one that the same request published before."""
    _publish(request, yes, new_charge, json)


def randomize(
    request: RequestPath, yes: Yes = False, new_charge: NewCharge = False, json: AsJson = False
) -> None:
    """Make one noisy report of every row, where the rows are: for the mechanism 'local'."""
    from tasks.request import read_request

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
    """Publish the average of noisy reports from one or more sources."""
    _publish(request, yes, new_charge, json, [str(path.absolute()) for path in reports])


def _publish(
    request: Path, yes: bool, new_charge: bool, json: bool, reports: list[str] | None = None
) -> None:
    from tasks.request import read_request
    from tasks.steward import page, recall

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
        typer.Option("--raise", metavar="EPSILON DELTA", help="Raise the lifetime budget."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why it is raised; kept in the ledger.")] = "",
    json: AsJson = False,
) -> None:
    """Show what was spent and what remains, or raise a budget for a stated reason."""
    from ledger import Ledger
    from schemas.contract import Budget
    from schemas.model import parse

    ledger = Ledger(Home.default().ledger)
    if raise_to:
        if dataset is None:
            raise RequestError("Which data set's budget?", "Name it before --raise.")
        named = dict(zip(("epsilon", "delta"), raise_to, strict=True))
        ledger.raise_budget(dataset, parse(Budget, named, "--raise", RequestError), reason)
    names = [dataset] if dataset else ledger.datasets()
    known = [(name, ledger.statement(name), ledger.raises(name)) for name in names]
    if json:
        view.as_json([view.statement_facts(*each) for each in known])
        return
    for each in known:
        view.statement_text(*each)
    if not names:
        view.say("No data set is registered yet: a first release registers it.")


def serve(
    requests: Annotated[
        list[Path] | None, typer.Argument(metavar="[REQUEST]...", help="Requests to schedule.")
    ] = None,
    cron: Annotated[str, typer.Option(help="When they run.")] = "0 6 * * 1",
    timezone: Annotated[
        str | None, typer.Option(help="Of the schedule; default: the request's, else UTC.")
    ] = None,
    port: Annotated[int, typer.Option(help="Of the Prefect server.")] = 4200,
) -> None:
    """Run a Prefect server, the deployments and a worker on this machine, until Ctrl-C."""
    from gramercy.serve import serve as run
    from tasks.request import read_request

    run([read_request(path) for path in requests or []], cron, timezone, port)


def _show_plan(asked: Any, json: bool = False, *, averaging: bool = False) -> None:
    from ledger import Ledger
    from tasks.plan import make_plan, outlook

    worked_out = make_plan(asked, averaging=averaging)
    seen = outlook(worked_out, Ledger(Home.default().ledger))
    if json:
        view.as_json(view.plan_facts(worked_out, seen))
    else:
        view.plan_text(worked_out, seen)


def _interrupted(asked: Any, averaging: bool) -> str | None:
    """The release that was charged for this request and then interrupted."""
    from ledger import Ledger
    from tasks.plan import make_plan, outlook

    charge = outlook(make_plan(asked, averaging=averaging), Ledger(Home.default().ledger)).answered
    return charge.release if charge is not None and charge.state != "published" else None


def _beside(program: str) -> str:
    """A program of the environment that this one runs in, as one would type it here."""
    path = Path(sys.argv[0]).absolute().parent / program
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
