"""Every command's help has a description and a valid example."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from gramercy.cli.commands import COMMANDS, load
from gramercy.cli.main import app


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and its subcommands, each with its path."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, *path, name)


ROOT: Any = typer.main.get_command(app)
EVERY = {(): ROOT} | dict(each for name in COMMANDS for each in commands(load(name), name))


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_ends_with_an_example_that_parses(path: tuple[str, ...]) -> None:
    command = EVERY[path]
    description, mark, example = (command.help or "").rpartition("\n\nExample: gramercy ")
    assert mark, f"the help of gramercy {' '.join(path)} has no example at its end"
    assert len(description) > 10
    words = shlex.split(re.sub(r"\s+", " ", example))
    assert tuple(words[: len(path)]) == path
    context, left = None, words
    reached: Any = ROOT
    while left:
        context = reached.make_context(reached.name or "gramercy", left, parent=context)
        left = [*context._protected_args, *context.args]
        if not left:
            break
        name, reached, left = reached.resolve_command(context, left)
        if not left:
            reached.make_context(name, left, parent=context)
    assert path == () or reached is command
    assert all(option.help for option in command.params if option.name != "help")


@pytest.mark.parametrize("name", COMMANDS)
def test_command_list_shows_the_first_line_of_each_docstring(name: str) -> None:
    first, _, _ = EVERY[(name,)].help.partition("\n")
    assert ROOT.commands[name].get_short_help_str(100) == first.partition(". ")[0].rstrip(".") + "."


@pytest.mark.slow
def test_help_imports_no_command() -> None:
    code = (
        "import sys\n"
        "from gramercy.cli.main import app\n"
        "sys.argv = ['gramercy', '--help']\n"
        "try: app()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f"  {name} " in done.stdout for name in COMMANDS)
    imported = set(done.stderr.split())
    assert not imported & {f"gramercy.cli.{place.partition(':')[0]}" for place in COMMANDS.values()}
    assert not imported & {"numpy", "pydantic", "prefect", "sqlalchemy"}
