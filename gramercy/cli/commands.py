"""The commands; each is imported only when it is called, so that help is fast."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem

# The function or application, and the first line of its docstring.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:demo", "Publish a release of a made-up table, and compare it with the truth."),
    "new": (
        "new:new",
        "Draft a contract and a request for a table.",
    ),
    "convert": (
        "convert:convert",
        "Convert a file of another program to Parquet, which releases read.",
    ),
    "plan": (
        "plan:plan",
        "Show what a release would do, without reading a row.",
    ),
    "check": (
        "check:check",
        "Show the steward what a release could not use of the table, without a charge.",
    ),
    "release": (
        "publish:release",
        "Publish a release, or return the one published before.",
    ),
    "randomize": (
        "publish:randomize",
        "Publish one noisy report per row, for the mechanism 'local'.",
    ),
    "aggregate": (
        "publish:aggregate",
        "Publish the average of noisy reports from one or more sources.",
    ),
    "budget": (
        "budget:budget",
        "Show spent and remaining budget, or change a budget.",
    ),
    "withdraw": (
        "withdraw:withdraw",
        "Withdraw a release. It stays readable, and its charge stays spent.",
    ),
    "register": (
        "register:register",
        "Allow scheduled runs to publish by this contract.",
    ),
    "serve": (
        "serve:serve",
        "Run Prefect, its deployments and a worker on this machine.",
    ),
    "list": ("list:list_archive", "List the releases of an archive, or of one of its data sets."),
    "show": ("show:show", "Show a release: its guarantee, its noise and its files."),
    "verify": (
        "verify:verify",
        "Recompute what releases state, and name what differs.",
    ),
    "estimate": (
        "estimate:estimate",
        "Estimate from a release, at no further privacy cost.",
    ),
    "mechanisms": ("mechanisms:mechanisms", "List the mechanisms with one line each."),
    "compare": (
        "compare:compare",
        "Compare two releases: which entries changed by more than the noise.",
    ),
    "site": (
        "site:site",
        "Rewrite the catalogue's pages.",
    ),
    "audit": (
        "audit:audit",
        "Check that ledger, archive and run history agree.",
    ),
    "history": (
        "history:history",
        "Show every charge and every change of a budget.",
    ),
    "export": (
        "export:export",
        "Export the catalogue to a registry or as one data package.",
    ),
    "explain": (
        "explain:explain",
        "Explain a code such as GRM-101: its cause and its remedy.",
    ),
    "keys": ("keys:app", "List the keys that sign bundles, or create a new one."),
}


_GROUPS = {"keys"}  # commands that have commands


class LazyGroup(TyperGroup):
    """A group that imports a command's module when the command is looked up."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]  # nothing is added to it

    def list_commands(self, ctx: Context) -> list[str]:
        """The names of the commands."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        """The command of this name; for completion in a shell, one without its options."""
        if not ctx.resilient_parsing or args[0] not in COMMANDS or args[0] in _GROUPS:
            return super().resolve_command(ctx, args)
        from gramercy.cli.completion import CompletedCommand  # only for completion

        return args[0], CompletedCommand(args[0], functools.partial(_load, args[0])), args[1:]

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """The names of the commands; of options after a hyphen."""
        from gramercy.cli.completion import complete_commands

        if incomplete.startswith("-"):
            return TyperCommand.shell_complete(self, ctx, incomplete)
        return complete_commands(COMMANDS, incomplete)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """List them with the lines of `COMMANDS`."""
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
    command: typer.Typer | Callable[..., None] = pkgutil.resolve_name(
        f"gramercy.cli.{COMMANDS[name][0]}"
    )
    if isinstance(command, typer.Typer):
        return typer.main.get_command(command)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(command)
    return typer.main.get_command(app)
