"""``gramercy demo``: publish one release, end to end."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.panel import Panel
from rich.text import Text

from gramercy.api.release import Release
from gramercy.archive.store.layout import INDEX
from gramercy.cli import flow_runner, terminal
from gramercy.cli.options import split_name
from gramercy.cli.plan_text import print_plan
from gramercy.pipeline.context import Context
from gramercy.pipeline.demo import FORMULA, PRESSURE, write_demo_files
from gramercy.pipeline.plan.budget_preview import preview_budget
from gramercy.pipeline.plan.planning import make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.publish.internal_record import page_path


def demo() -> None:
    """Publish a release of a made-up table, and compare it with the truth.

    Example: gramercy demo
    """
    context = Context.default()
    path = write_demo_files(context.home)
    planned = make_plan(context, read_request(path))
    terminal.say(
        f"A clinic publishes statistics of {planned.contract.count:,} visits. The table is made "
        "up, so that the truth is known.\nTable and request are in ",
        terminal.bold(str(path.parent)),
        ".\n",
    )
    print_plan(planned, preview_budget(context, planned))
    done = flow_runner.publish(context, planned)
    release = Release(context.archive, *split_name(done.release))
    terminal.say("")
    fitted = release.regression(FORMULA)
    intervals = fitted.conf_int()
    lines = {"": f"{'estimate':>9}  {'95 % interval':>17}  {'made with':>9}"}
    for term in fitted.params.index[1:]:
        lower, upper = intervals.loc[term]
        interval = f"{lower:.3f} to {upper:.3f}"
        lines[term] = f"{fitted.params[term]:9.3f}  {interval:>17}  {PRESSURE[term]:9.3g}"
    terminal.facts_table(f"From the release alone: {FORMULA}", lines)
    terminal.say("")
    _print_outcome(context, release, done)


def _print_outcome(context: Context, release: Release, done: flow_runner.Published) -> None:
    """What was published, where it is, and what to try next."""
    program, root = _command("gramercy"), context.archive.root
    facts = {
        "Release": f"{release.id}: means, correlations, distributions, a regression, a graph",
        "Guarantee": release.manifest.card["statement"],
        "Files": str(release.path),
        "Report": done.report or "none",
        "Catalogue": context.archive.display_path(root / INDEX),
        "Internal": f"{page_path(context.home, *split_name(release.id))} (do not publish)",
    }
    text = Text()
    for name, value in facts.items():
        text.append(f"{name:<11}", style="bold").append(f"{value}\n")
    text.append(
        f"\nTry next\n  {program} show {release.id}\n  {program} verify {release.id}\n"
        f"  {program} budget {release.manifest.dataset.id}\n"
        f"  {program} estimate {release.id} --estimator discoveries\n"
        f"  {_command('python')}\n"
        "  >>> import gramercy\n"
        f"  >>> release = gramercy.open('{root}')['{release.id}']\n"
        "  >>> release.regression('cost ~ age + ward').summary()"
    )
    title = "Released before, nothing was charged" if done.replayed else "Released"
    terminal.out.print(Panel(text, title=title, title_align="left", expand=False, padding=1))


def _command(program: str) -> str:
    """A program of the running environment, as you would type it in this folder."""
    path = Path(sys.argv[0]).absolute().parent / program
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
