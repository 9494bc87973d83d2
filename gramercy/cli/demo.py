"""``gramercy demo``: publish one release, end to end."""

from __future__ import annotations

import sys
from pathlib import Path

from gramercy.api.release import Release
from gramercy.application.budget_preview import preview_budget
from gramercy.application.context import Context
from gramercy.application.demo import write_demo_files
from gramercy.application.internal_record import page_path
from gramercy.application.planning import make_plan
from gramercy.application.yaml_files import read_request
from gramercy.archive.layout import INDEX
from gramercy.cli import flow_runner
from gramercy.cli.options import split_name
from gramercy.cli.output import terminal
from gramercy.cli.output.plan_text import print_plan


def demo() -> None:
    """Publish a release of scikit-learn's breast cancer table.

    Example: gramercy demo
    """
    context = Context.default()
    path = write_demo_files(context.home)
    terminal.say(
        "A clinic publishes the second moment of 30 measurements of 569 patients.\n"
        "Its table, contract and request are in ",
        terminal.bold(str(path.parent)),
        ".\n",
    )
    planned = make_plan(context, read_request(path))
    preview = preview_budget(context, planned)
    print_plan(planned, preview)
    done = flow_runner.publish(context, planned)
    archive = context.archive
    release = Release(archive, *split_name(done.release))
    internal = page_path(context.home, *split_name(done.release))
    terminal.panel(
        "Released before, nothing was charged" if done.replayed else "Released",
        {
            "Release": f"{release.id}: the noisy and the denoised second moment",
            "Guarantee": release.manifest.card["statement"],
            "Files": str(release.path),
            "Report": done.report or "none",
            "Catalogue": archive.display_path(archive.root / INDEX),
            "Internal": f"{internal} (do not publish)",
        },
        "",
        "Try next",
        f"  {_command('gramercy')} show {release.id}",
        f"  {_command('gramercy')} verify {release.id}",
        f"  {_command('gramercy')} budget {release.manifest.dataset.id}",
        f"  {_command('python')}",
        "  >>> import gramercy",
        f"  >>> gramercy.open('{archive.root}')['{release.id}'].denoised",
    )


def _command(program: str) -> str:
    """A program of the running environment, as you would type it in this folder."""
    path = Path(sys.argv[0]).absolute().parent / program
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
