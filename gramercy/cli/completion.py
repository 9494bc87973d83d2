"""Completion of arguments in a shell: names in the home's archive, estimators and codes.

A shell waits for the answer at every press of the Tab key. So nothing is imported that reads a
table or an archive: the names of folders suffice, and a name that is offered may still be refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand

from gramercy.common.home import Home

if TYPE_CHECKING:
    from typer._click import Command, Context

# A test compares them with the registry, which imports NumPy.
ESTIMATORS = (
    "ridge",
    "graphical-lasso",
    "scio",
    "wishart-prior",
    "neighbourhood",
    "thresholded",
    "discriminant",
    "quadratic-discriminant",
    "intervals",
    "discoveries",
    "regression",
    "pca",
    "tables",
    "moments",
    "synthetic",
    "pool",
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)  # as in `archive.layout`
_COMMITTED = "SHA256SUMS.sig"


class CompletedCommand(TyperCommand):
    """Completes the words of a command whose module is imported only for its options.

    Parameters
    ----------
    name
        The command.
    load
        Imports the command.
    """

    def __init__(self, name: str, load: Callable[[], Command]) -> None:
        # The words before the one that is completed are all kept, in `Context.args`.
        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        super().__init__(name, context_settings=settings, add_help_option=False)
        self._load = load

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """The completions of a word; none where the shell should offer files."""
        before = ctx.args[-1] if ctx.args else ""
        if incomplete.startswith("-"):
            command = self._load()
            with command.make_context(
                self.name, [], parent=ctx.parent, resilient_parsing=True
            ) as options:
                return command.shell_complete(options, incomplete)
        if before == "--estimator":
            names: Iterator[str] = iter(ESTIMATORS)
        elif before.startswith("-") and before != "--json":
            return []  # the value of another option
        else:
            names = _ARGUMENTS.get(str(self.name), _nothing)()
        return [CompletionItem(each) for each in names if each.startswith(incomplete)]


def _nothing() -> Iterator[str]:
    return iter(())


def _archive() -> Path | None:
    """The folder of the home's archive; None if it is elsewhere, where looking takes long."""
    home = Home.default()
    return None if home.archive_url else home.archive


def _folders(folder: Path) -> list[str]:
    try:
        return sorted(each for each in os.listdir(folder) if _NAME.fullmatch(each))
    except OSError:
        return []


def _datasets() -> Iterator[str]:
    """The data sets that have a release."""
    releases = (each.partition("/")[0] for each in _releases())
    return iter(dict.fromkeys(releases))


def _releases() -> Iterator[str]:
    """The committed releases, as DATASET/RELEASE."""
    root = _archive()
    for dataset in _folders(root) if root is not None else ():
        for release in _folders(Path(str(root), dataset)):
            if Path(str(root), dataset, release, "release", _COMMITTED).is_file():
                yield f"{dataset}/{release}"


def _names() -> Iterator[str]:
    """Data sets and releases."""
    yield from _datasets()
    yield from _releases()


def _codes() -> Iterator[str]:
    from gramercy.schemas.problems import catalogue  # imports every problem

    return iter(catalogue())


_ARGUMENTS: dict[str, Callable[[], Iterator[str]]] = {
    "budget": _datasets,
    "history": _datasets,
    "list": _datasets,
    "show": _releases,
    "estimate": _releases,
    "compare": _releases,
    "withdraw": _releases,
    "verify": _names,
    "explain": _codes,
}


def complete_commands(commands: dict[str, tuple[str, str]], incomplete: str) -> list[Any]:
    """The commands whose names begin like this, with their first lines."""
    return [
        CompletionItem(name, help=line)
        for name, (_, line) in commands.items()
        if name.startswith(incomplete)
    ]
