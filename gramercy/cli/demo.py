"""``gramercy demo``: one release, end to end."""

from __future__ import annotations

import sys
from pathlib import Path

from gramercy.api.release import Release
from gramercy.application.context import Context
from gramercy.application.demo import lay_out
from gramercy.application.internal_record import page
from gramercy.application.outlook import outlook
from gramercy.application.planning import make_plan
from gramercy.application.yaml_files import read_request
from gramercy.archive.layout import INDEX
from gramercy.cli import running
from gramercy.cli.options import parts_of
from gramercy.cli.output import terminal
from gramercy.cli.output.plan_text import plan_text


def demo() -> None:
    """Publish one release of scikit-learn's breast cancer table, end to end.

    Example: gramercy demo
    """
    context = Context.default()
    path = lay_out(context.home)
    terminal.say(
        "A clinic publishes the second moments of 30 measurements of 569 patients.\n"
        "Its table, contract and request are in ",
        terminal.bold(str(path.parent)),
        ".\n",
    )
    planned = make_plan(context, read_request(path))
    seen = outlook(context, planned)
    plan_text(planned, seen)
    done = running.publish(context, planned, seen)
    archive = context.archive
    release = Release(archive, *parts_of(done.release))
    internal = page(context.home, *parts_of(done.release))
    terminal.panel(
        "Released before; nothing was charged" if done.replayed else "Released",
        {
            "What": f"the noisy and the denoised second moment, {release.id}",
            "Guarantee": release.manifest.card["statement"],
            "Where": str(release.path),
            "Report": done.report or "none",
            "Catalogue": archive.shown(archive.root / INDEX),
            "For you": f"{internal} (internal: never publish it)",
        },
        "",
        "Try next",
        f"  {_beside('gramercy')} show {release.id}",
        f"  {_beside('gramercy')} verify {release.id}",
        f"  {_beside('gramercy')} budget {release.manifest.dataset.id}",
        f"  {_beside('python')}",
        "  >>> import gramercy",
        f"  >>> gramercy.open('{archive.root}')['{release.id}'].denoised",
    )


def _beside(program: str) -> str:
    """A program of the environment that this one runs in, as one would type it here."""
    path = Path(sys.argv[0]).absolute().parent / program
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
