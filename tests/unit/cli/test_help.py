"""Every command says what it is for, and shows an example that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from gramercy.cli.main import app


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and all those below it, each with the words that name it."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, *path, name)


ROOT = typer.main.get_command(app)
EVERY = dict(commands(ROOT))


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_ends_with_an_example_that_parses(path: tuple[str, ...]) -> None:
    command = EVERY[path]
    about, found, example = (command.help or "").rpartition("\n\nExample: gramercy ")
    assert found, f"gramercy {' '.join(path)}: its help ends with no example"
    assert len(about) > 10
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
