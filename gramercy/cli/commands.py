"""The commands, each imported when it is asked for; the help lists them and imports none."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

# The function or application, and the first line of its docstring.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:demo", "Publish one release of scikit-learn's breast cancer table, end to end."),
    "new": (
        "new:new",
        "Write a contract and a request for a table, from the names and types of its columns.",
    ),
    "plan": (
        "plan:plan",
        "Show what a release would do: noise, guarantee, error, budget. Reads no data.",
    ),
    "release": (
        "publish:release",
        "Publish a release, or return the one that the same request published before.",
    ),
    "randomize": (
        "publish:randomize",
        "Make one noisy report of every row, where the rows are: for the mechanism 'local'.",
    ),
    "aggregate": (
        "publish:aggregate",
        "Publish the average of noisy reports from one or more sources.",
    ),
    "budget": (
        "budget:budget",
        "Show what was spent and what remains; or change a budget, for a stated reason.",
    ),
    "withdraw": (
        "withdraw:withdraw",
        "Mark a bad release in the catalogue. It stays readable, and its charge stays spent.",
    ),
    "serve": (
        "serve:serve",
        "Run a Prefect server, the deployments and a worker on this machine, until Ctrl-C.",
    ),
    "list": ("list:list_releases", "List the releases of the archive."),
    "show": ("show:show", "Show what a release is, what it guarantees, and its noise."),
    "verify": (
        "verify:verify",
        "Recompute everything a release states, and name the file that is wrong.",
    ),
    "estimate": (
        "estimate:estimate",
        "Estimate from a release: a precision matrix, a covariance, a graph, intervals, classes.",
    ),
    "mechanisms": ("mechanisms:mechanisms", "List the mechanisms, with one line each."),
    "compare": (
        "compare:compare",
        "Hold two releases of a data set against each other: what changed beyond their noise.",
    ),
    "site": (
        "site:site",
        "Write all pages of the catalogue anew: index.html in the archive, and what it links to.",
    ),
    "audit": (
        "audit:audit",
        "Hold ledger, archive and run history against each other. Changes nothing.",
    ),
    "history": (
        "history:history",
        "Show what was spent over time: every charge, and every change of a budget.",
    ),
    "export": (
        "export:export",
        "Hand the catalogue on: to the OpenDP Deployments Registry, or as one data package.",
    ),
    "keys": ("keys:app", "Show the keys that sign bundles, or make a new one."),
}


class LazyGroup(TyperGroup):
    """A group that imports a command's module when the command is looked up."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]  # nothing is added to it

    def list_commands(self, ctx: Context) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """List them by the lines of the table."""
        lines = [TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()]
        TyperGroup(commands=lines).format_commands(ctx, formatter)


class _Commands(Mapping[str, "Command"]):
    def __getitem__(self, name: str) -> Command:
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@functools.cache
def _load(name: str) -> Command:
    found: typer.Typer | Callable[..., None] = pkgutil.resolve_name(
        f"gramercy.cli.{COMMANDS[name][0]}"
    )
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(found)
    return typer.main.get_command(app)
