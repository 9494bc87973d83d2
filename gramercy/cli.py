"""The ``gramercy`` command. Exit codes: 0 done, 2 refused or invalid, 1 failure."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from gramercy import view
from gramercy.catalogue import Release
from schemas.errors import GramercyError, Refused, RequestError
from schemas.home import Home

app = typer.Typer(
    help="Publish second-moment matrices with an exact differential-privacy guarantee.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

RequestPath = Annotated[Path, typer.Argument(metavar="REQUEST", help="Release request, YAML.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def demo() -> None:
    """Publish one release of scikit-learn's breast cancer table, end to end."""
    from gramercy.demo import lay_out
    from tasks.request import read_request

    home = Home.default()
    path = lay_out(home)
    view.out.print(
        "A clinic publishes the second moments of 30 measurements of 569 patients.\n"
        f"Its table, contract and request are in [bold]{path.parent}[/bold].\n"
    )
    _show_plan(path)
    facts = _publish(read_request(path))
    release = Release(_archive(), *facts["release"].split("/"))
    root, name = _archive().root, release.id
    view.panel(
        "Released" if not facts["replayed"] else "Released before; nothing was charged",
        f"[bold]What[/bold]       the noisy and the denoised second moment, {name}",
        f"[bold]Guarantee[/bold]  {release.manifest.card['statement']}",
        f"[bold]Where[/bold]      {release.path}",
        "",
        "[bold]Try next[/bold]",
        f"  .venv/bin/gramercy show {name}",
        f"  .venv/bin/gramercy verify {name}",
        f"  .venv/bin/gramercy budget {release.manifest.dataset.id}",
        "  .venv/bin/python",
        "  >>> import gramercy",
        f"  >>> gramercy.open('{root}')['{name}'].denoised",
    )


@app.command()
def plan(request: RequestPath, json: AsJson = False) -> None:
    """Show what a release would do: noise, guarantee, error, budget. Reads no data."""
    _show_plan(request, json)


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

    asked = read_request(request)
    if new_charge:
        asked = asked.model_copy(update={"new_charge": True})
    if not json:
        _show_plan(request)
    if not yes:
        if not sys.stdin.isatty():
            raise RequestError("Nobody is there to be asked.", "Add --yes to publish.")
        typer.confirm("Publish? A charge is never refunded.", abort=True, err=True)
    facts = _publish(asked)
    if json:
        view.as_json(facts)
        return
    words = "Published before, nothing charged" if facts["replayed"] else "Published"
    view.out.print(f"{words}: [bold]{facts['release']}[/bold]\n{facts['path']}")


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
    statements = {name: ledger.statement(name) for name in names}
    if json:
        view.as_json([view.statement_facts(name, s) for name, s in statements.items()])
        return
    for name, statement in statements.items():
        view.statement_text(name, statement)
    if not names:
        view.out.print("No data set is registered yet: a first release registers it.")


@app.command("list")
def list_(json: AsJson = False) -> None:
    """List the releases of the archive."""
    archive = _archive()
    releases = [Release(archive, *each) for each in archive.releases()]
    if json:
        view.as_json([_listing(r) for r in releases])
        return
    for each in releases:
        g = each.guarantee
        view.out.print(
            f"[bold]{each.id}[/bold]  epsilon {g.epsilon:.4g} at delta {g.delta:g}  "
            f"{each.manifest.published}  {each.manifest.dataset.title}"
        )
    if not releases:
        view.out.print(f"No release in {archive.root} yet.")


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
    view.out.print(f"[bold]{facts.dataset.title}[/bold], version {facts.dataset.version}")
    view.out.print(facts.card["statement"] + "\n")
    sd = f" ± {facts.rows.sd:.0f}" if facts.rows.status == "noisy" else ""
    view.facts_table(
        found.id,
        {
            "curator": facts.dataset.curator,
            "published": facts.published,
            "table": f"{facts.rows.value:.0f}{sd} rows ({facts.rows.status}) x "
            f"{len(facts.columns)} columns",
            "neighbours": facts.card["neighbours"],
            "mechanism": facts.card["mechanism"],
            "noise": f"sd {facts.noise.sd_off_diagonal:.3g} off the diagonal, "
            f"{facts.noise.sd_diagonal:.3g} on it",
            "estimates": ", ".join(found.estimates) or "none",
            "where": str(found.path),
        },
    )


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[RELEASE]...", help="Default: all.")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(help="An archive that is not this home's own.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Recompute everything a release states, and name the file that is wrong."""
    from archive.store import Archive
    from gramercy.verify import verify_release
    from ledger import Ledger

    home = Home.default()
    store = Archive(archive) if archive else _archive()
    ledger = Ledger(home.ledger) if archive is None and home.ledger.exists() else None
    chosen = [tuple(n.partition("/")[::2]) for n in names] if names else store.releases()
    if not chosen:
        raise RequestError(f"{store.root}: holds no release.", "Publish one first.")
    done = []
    for dataset, name in chosen:
        verified = verify_release(store, dataset, name, ledger)
        done.append({"release": verified.release, "checks": list(verified.checks)})
        if not json:
            view.out.print(f"[bold]{verified.release}[/bold]")
            for words in verified.checks:
                view.out.print(f"  [green]✓[/green] {words}")
    if json:
        view.as_json(done)


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
    _start_prefect()
    from flows.estimate import estimate as flow

    (done,) = flow(found.id, (chosen,))
    path = _archive().estimate(*found.id.split("/"), done)
    if json:
        view.as_json({"release": found.id, "estimate": done, "path": str(path)})
    else:
        view.out.print(f"Estimated: [bold]{done}[/bold], no further privacy cost\n{path}")


def main() -> None:
    """Run the command; turn errors into words and exit codes."""
    try:
        app()
    except GramercyError as error:
        label = "Refused" if isinstance(error, Refused) else "Error"
        view.err.print(f"[red]{label}:[/red] {escape(str(error))}")
        sys.exit(error.exit_code)


def _publish(asked: Any) -> dict[str, Any]:
    """Run the release flow, then the estimate flow, in this process."""
    from ledger import Ledger
    from tasks.plan import make_plan, outlook
    from tasks.steward import recall

    before = len(outlook(make_plan(asked), Ledger(Home.default().ledger)).before.charges)
    _start_prefect()
    from flows.estimate import estimate as estimate_flow
    from flows.release import release as release_flow

    done = release_flow(asked)
    estimates = estimate_flow(done, asked.estimates) if asked.estimates else []
    dataset, name = done.split("/")
    after = len(Ledger(Home.default().ledger).statement(dataset).charges)
    _tell_steward(recall(dataset, name))
    return {
        "release": done,
        "path": str(_archive().release(dataset, name)),
        "estimates": estimates,
        "replayed": before == after,
    }


def _tell_steward(internal: dict[str, Any]) -> None:
    """What the steward should know of the private table; on the terminal, and nowhere else."""
    if internal.get("table_changed_since"):
        view.err.print(
            "[yellow]Note for the steward:[/yellow] the files have changed since this version was "
            "published. A new version is a new release, and a new charge."
        )
    for key, words in (
        ("filled_cells", "were missing or not numbers, and took the public centre"),
        ("clamped_cells", "were out of bounds, and were clamped"),
    ):
        counts = {name: count for name, count in internal.get(key, {}).items() if count}
        if counts:
            worst = sorted(counts, key=counts.__getitem__, reverse=True)
            listed = ", ".join(f"{name} ({counts[name]})" for name in worst[:5])
            more = f" and {len(worst) - 5} more columns" if worst[5:] else ""
            view.err.print(f"[yellow]Note for the steward:[/yellow] cells {words}: {listed}{more}.")
    if internal.get("malformed_rows"):
        view.err.print(
            f"[yellow]Note for the steward:[/yellow] {internal['malformed_rows']} lines have the "
            "wrong number of fields, and counted as rows of zeros."
        )


def _show_plan(path: Path, json: bool = False) -> None:
    from ledger import Ledger
    from tasks.plan import make_plan, outlook
    from tasks.request import read_request

    worked_out = make_plan(read_request(path))
    seen = outlook(worked_out, Ledger(Home.default().ledger))
    if json:
        view.as_json(view.plan_facts(worked_out, seen))
    else:
        view.plan_text(worked_out, seen)


def _start_prefect() -> None:
    """Prefect as the command line wants it: patient at its start, silent on the terminal.

    Prefect reads these settings once, when it is first imported.
    """
    os.environ["GRAMERCY_PROGRESS"] = "1"
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    view.err.print("[dim]Starting Prefect (half a minute where no server runs) ...[/dim]")


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


def _listing(each: Release) -> dict[str, Any]:
    facts = each.manifest
    return {
        "release": each.id,
        "title": facts.dataset.title,
        "published": facts.published,
        "epsilon": facts.guarantee.epsilon,
        "delta": facts.guarantee.delta,
        "mu": facts.guarantee.mu,
        "path": str(each.path),
    }
