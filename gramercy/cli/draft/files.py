"""A draft as the files of a contract and a request."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from gramercy.cli.draft.drafting import Draft
from gramercy.cli.draft.scalars import in_yaml
from gramercy.cli.output.page_file import check_folder, written
from gramercy.schemas.errors import RequestError

CONTRACT, REQUEST = "contract.yaml", "request.yaml"


def write(made: Draft, folder: Path) -> tuple[Path, Path]:
    """Write contract and request into a folder, which may be there; no file of it is overwritten.

    Raises
    ------
    RequestError
        If one of them is there already, the folder is the table, or it cannot be written.
    """
    paths = folder / CONTRACT, folder / REQUEST
    if Path(made.source).is_dir() and folder.resolve() == Path(made.source).resolve():
        raise RequestError(f"{folder}: is the table itself.", "Name another with --folder.")
    for path in paths:
        if os.path.lexists(path):
            raise RequestError(
                f"{path}: is there already.", "Move it away, or name another with --folder."
            )
    counted = "rows" if made.unit is None else "persons"
    facts = {**vars(made), "source": _seen_from(folder, made.source), "counted": counted}
    texts = [_templates().get_template(path.name).render(facts) for path in paths]
    check_folder("--folder", folder)
    with written("--folder", folder), contextlib.ExitStack() as undo:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts, strict=True):
            with path.open("x", encoding="utf-8") as stream:
                undo.callback(path.unlink)
                stream.write(text)
        undo.pop_all()  # both are there, or none
    return paths


def _seen_from(folder: Path, source: str) -> str:
    """A source as a contract in a folder names it."""
    if "://" in source or Path(source).is_absolute():
        return source
    return Path(os.path.relpath(Path(source).absolute(), folder.resolve())).as_posix()


@functools.cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("gramercy.cli", "draft"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # YAML, whose quotes are `in_yaml`'s
    )
    made.filters["yaml"] = in_yaml
    made.filters["value"] = lambda value: "" if value is None else f" {in_yaml(value)}"
    return made
