"""The commands; each is imported only when it is called, so that help is fast."""

from __future__ import annotations

import ast
import functools
import pkgutil
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# Module and name of the function or application, within `gramercy.cli`.
COMMANDS = {
    "demo": "demo:demo",
    "new": "new:new",
    "convert": "convert:convert",
    "plan": "plan:plan",
    "check": "check:check",
    "release": "publish:release",
    "randomize": "publish:randomize",
    "aggregate": "publish:aggregate",
    "budget": "budget:budget",
    "withdraw": "withdraw:withdraw",
    "register": "register:register",
    "approve": "approve:approve",
    "serve": "serve:serve",
    "list": "list:list_archive",
    "show": "show:show",
    "verify": "verify:verify",
    "estimate": "estimate:estimate",
    "mechanisms": "mechanisms:mechanisms",
    "compare": "compare:compare",
    "site": "site:site",
    "status": "status:status",
    "audit": "audit:audit",
    "history": "history:history",
    "export": "export:export",
    "explain": "explain:explain",
    "keys": "keys:app",
    "backup": "backup:backup",
    "restore": "backup:restore",
}


class LazyGroup(TyperGroup):
    """A group that lists commands without importing them, and imports the one that is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: _ListedCommand(name) for name in COMMANDS}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, in place of its entry in the list."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and load(args[0]), rest


class _ListedCommand(TyperCommand):
    """An entry in the list of commands: a name and the first line of a docstring."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """The line, read from the source of the module."""
        module, _, function = COMMANDS[str(self.name)].partition(":")
        source = pkgutil.get_data("gramercy.cli", f"{module}.py") or b""
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name in {function, self.name}:
                self.help = (ast.get_docstring(node) or "").partition("\n")[0]
        return super().get_short_help_str(limit)


@functools.cache
def load(name: str) -> Any:
    """Import a command."""
    command: typer.Typer | Callable[..., None] = pkgutil.resolve_name(
        f"gramercy.cli.{COMMANDS[name]}"
    )
    if isinstance(command, typer.Typer):
        return typer.main.get_command(command)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(command)
    return typer.main.get_command(app)
