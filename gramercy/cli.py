"""The ``gramercy`` command. Exit codes: 0 done, 2 refused or invalid, 1 failure."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from gramercy import __version__, running, view
from gramercy.catalogue import Release
from schemas.errors import GramercyError, Invalid, Refused, RequestError
from schemas.home import Home

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

RequestPath = Annotated[Path, typer.Argument(metavar="REQUEST", help="Release request, YAML.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def front(version: Annotated[bool, typer.Option("--version", help="Print it.")] = False) -> None:
    """Publish second-moment matrices with an exact differential-privacy guarantee."""
    if version:
        print(__version__)


@app.command()
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
    release = Release(_archive(), *facts["release"].split("/"))
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
        f"  >>> gramercy.open('{_archive().root}')['{release.id}'].denoised",
    )


@app.command()
def plan(request: RequestPath, json: AsJson = False) -> None:
    """Show what a release would do: noise, guarantee, error, budget. Reads no data."""
    from tasks.request import read_request

    _show_plan(running.today(read_request(request)), json)


@app.command()
def release(
    request: RequestPath,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    new_charge: Annotated[
        bool, typer.Option("--new-charge", help="Pay again after an interrupted release.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Publish a release, or return the one that the same request published before."""
    from tasks.request import read_request
    from tasks.steward import page, recall

    asked = running.today(read_request(request))
    if new_charge:
        asked = asked.model_copy(update={"new_charge": _interrupted(asked)})
    if not json:
        _show_plan(asked)
    if not yes:
        if not sys.stdin.isatty():
            raise RequestError("Nobody is there to be asked.", "Add --yes to publish.")
        typer.confirm("Publish? A charge is never refunded.", abort=True, err=True)
    facts = running.publish(asked)
    view.steward_notes(recall(*facts["release"].split("/")))
    for problem in facts["problems"]:
        view.say(Text("It is published, but: ", style="yellow"), problem, to=view.err)
    if json:
        view.as_json(facts)
        return
    words = "Published before, nothing charged" if facts["replayed"] else "Published"
    view.say(f"{words}: ", view.bold(facts["release"]), f"\n{facts['path']}")
    view.say(f"Report: {facts['report'] or 'none'}")
    view.say(f"For you alone: {page(*facts['release'].split('/'))}", to=view.err)


@app.command()
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


@app.command()
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


@app.command("list")
def list_(json: AsJson = False) -> None:
    """List the releases of the archive."""
    from gramercy.verify import known_releases
    from ledger import Ledger

    home = Home.default()
    ledger = Ledger(home.ledger) if home.ledger.exists() else None
    found = [_listing(*each) for each in known_releases(_archive(), ledger)]
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
            view.say(view.bold(each["release"]), told)
    if not found:
        view.say(f"No release in {_archive().root} yet.")


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="RELEASE", help="DATASET/RELEASE.")],
    json: AsJson = False,
) -> None:
    """Show what a release is, what it guarantees, and its noise."""
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
            "table": f"{facts.rows.value:.0f}{sd} rows ({facts.rows.status}) x "
            f"{len(facts.names)} columns",
            "neighbours": facts.card["neighbours"],
            "rows were": facts.card["pre_processing"],
            "mechanism": facts.card["mechanism"],
            "noise": f"sd {facts.noise.sd_off_diagonal:.3g} off the diagonal, "
            f"{facts.noise.sd_diagonal:.3g} on it"
            + (f", {facts.noise.mean:.3g} on average there" if facts.noise.mean else ""),
            "estimates": ", ".join(found.estimates) or "none",
            "report": str(found.report or "none"),
            "where": str(found.path),
        },
    )


@app.command()
def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RELEASE]...", help="DATASET/RELEASE, or DATASET; default: all."),
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(help="An archive that is not this home's own.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Recompute everything a release states, and name the file that is wrong."""
    from archive.store import Archive
    from gramercy.verify import to_verify, verify_release
    from ledger import Ledger

    home = Home.default()
    store = Archive(archive) if archive else _archive()
    ledger = Ledger(home.ledger) if archive is None and home.ledger.exists() else None
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


@app.command()
def estimate(
    name: Annotated[str, typer.Argument(metavar="RELEASE", help="DATASET/RELEASE.")],
    estimator: Annotated[str, typer.Option(help="Which estimator.")] = "ridge",
    penalty: Annotated[str, typer.Option(help="A positive number, or auto.")] = "auto",
    source: Annotated[str, typer.Option("--input", help="denoised or raw.")] = "denoised",
    json: AsJson = False,
) -> None:
    """Estimate a precision matrix from a release. Reads the release alone; costs no privacy."""
    import estimators
    from schemas.model import parse

    found = _release(name)
    if estimator not in estimators.registry:
        known = ", ".join(estimators.registry)
        raise RequestError(f"--estimator: no '{estimator}'.", f"Known: {known}.")
    settings = {"name": estimator, "penalty": _number(penalty), "input": source}
    chosen = parse(estimators.registry[estimator], settings, "estimate", RequestError)
    done, page = running.estimate(found.id, chosen)
    path = _archive().estimate(*found.id.split("/"), done)
    if json:
        facts = {"release": found.id, "estimate": done, "path": str(path), "report": str(page)}
        view.as_json(facts)
    else:
        view.say("Estimated: ", view.bold(done), f", no further privacy cost\n{path}")
        view.say(f"Report: {page}")


_INTERRUPTED = 130


def main() -> None:
    """Run the command; turn errors into words and exit codes."""
    # Before Prefect is imported: nothing of a steward's work is told to anyone.
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    code, label, words = 1, "Error: ", ""
    try:
        app()
    except SystemExit as done:
        if done.code == _INTERRUPTED:
            words = "Interrupted. The same command tells what became of the release."
            view.say(words, to=view.err)
        raise
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except GramercyError as error:
        code, words = error.exit_code, str(error)
        label = "Refused: " if isinstance(error, Refused) else label
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        words = f"{error.filename}: {reason}."
    if "--json" in sys.argv:
        view.as_json({"error": words, "exit_code": code})
    view.say(Text(label, style="red"), words, to=view.err)
    sys.exit(code)


def _show_plan(asked: Any, json: bool = False) -> None:
    from ledger import Ledger
    from tasks.plan import make_plan, outlook

    worked_out = make_plan(asked)
    seen = outlook(worked_out, Ledger(Home.default().ledger))
    if json:
        view.as_json(view.plan_facts(worked_out, seen))
    else:
        view.plan_text(worked_out, seen)


def _interrupted(asked: Any) -> str | None:
    """The release that was charged for this request and then interrupted."""
    from ledger import Ledger
    from tasks.plan import make_plan, outlook

    charge = outlook(make_plan(asked), Ledger(Home.default().ledger)).answered
    return charge.release if charge is not None and charge.state != "published" else None


def _beside(program: str) -> str:
    """A program of the environment that this one runs in, as one would type it here."""
    path = Path(sys.argv[0]).absolute().parent / program
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _archive() -> Any:
    from archive.store import Archive

    return Archive(Home.default().archive)


def _release(name: str) -> Release:
    dataset, _, release_id = name.partition("/")
    return Release(_archive(), dataset, release_id)


def _listing(dataset: str, release: str) -> dict[str, Any]:
    try:
        each = Release(_archive(), dataset, release)
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
        "path": str(each.path),
    }
