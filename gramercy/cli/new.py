"""``gramercy new``: draft a contract and a request."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from jinja2 import Environment, PackageLoader, StrictUndefined

from gramercy.cli import terminal
from gramercy.cli.draft.dialogue import Dialogue
from gramercy.cli.draft.drafting import Draft, draft, parse_names, yaml_scalar
from gramercy.cli.options import AsJson, check_output_folder, write_errors
from gramercy.common.home import Home
from gramercy.pipeline.plan.calibration import folds_of_draft
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError, TableError
from gramercy.schemas.model import Model, Slug, parse
from gramercy.schemas.url import has_secrets, without_secrets
from gramercy.tables.formats.reader import count_rows
from gramercy.tables.formats.source import open_source


class _DatasetId(Model):
    id: Slug


def new(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Path, glob, folder or URL of CSV or Parquet files; or a database's table.",
        ),
    ],
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to write to; default: the id.")
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Id of the data set; default: the table's name.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns to publish; default: all that can be published."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Database of the table: env:NAME, or a URL without credentials."
        ),
    ] = None,
    grows: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The table grows; COLUMN has the date of each row. Drafts weekly releases.",
        ),
    ] = None,
    no_ask: Annotated[
        bool,
        typer.Option("--no-ask", help="Ask nothing; leave unknown values empty, to be filled in."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Draft a contract and a request for a table.

    It uses the names and types of the columns, and no value of the data. On a terminal it counts
    the rows, and proposes the rest: Enter accepts what is shown. If you interrupt it, the same
    command continues. Elsewhere, what is unknown stays empty.

    Example: gramercy new blood.csv --columns glucose,sodium
    """
    if has_secrets(table):
        raise families.DRAFT(
            "TABLE must not contain a user, a password or a query: the contract is public.",
            "Write {url}; put credentials into the environment variables or configuration files "
            "of its driver.",
            url=without_secrets(table),
        )
    if id_ is not None:
        parse(_DatasetId, {"id": id_}, "--id", RequestError)
    names = parse_names(columns) if columns is not None else None
    proposal = draft(table, id_, names, database, grows)
    target = folder if folder is not None else Path(proposal.id)
    check_absent(proposal, target)
    dialogue = None
    if not no_ask and sys.stdin.isatty():
        in_table = None
        if proposal.per is None:  # else every period has its own number
            with contextlib.suppress(TableError):
                in_table = count_rows(open_source(proposal.table))
        dialogue = Dialogue(proposal, Home.default(), in_table)
        try:
            proposal = dialogue.ask()
        except (EOFError, KeyboardInterrupt):
            terminal.say("\nYour answers are kept: the same command continues.", to=terminal.err)
            raise
    elif names is None:
        proposal = proposal.without_identifiers()
    written = write(proposal, target)
    if dialogue is not None:
        dialogue.forget()
    if json:
        columns_of = {"columns": list(proposal.candidates), "left_out": dict(proposal.left_out)}
        files = {path.stem: str(path) for path in written}
        plan_of = f"gramercy plan {shlex.quote(str(_first(written)))}"
        terminal.print_json({**files, **columns_of, "next": plan_of})
    else:
        _say_what_next(proposal, written, was_asked=dialogue is not None)


def _first(written: Sequence[Path]) -> Path:
    """The request that is published first: that of the constants, if they have one."""
    return written[-1]


def _say_what_next(proposal: Draft, written: Sequence[Path], *, was_asked: bool) -> None:
    contract, *requests = written
    left_out = f"; {len(proposal.left_out)} left out: see the file" if proposal.left_out else ""
    count = len(proposal.candidates)
    counted = "1 column" if count == 1 else f"{count} columns"
    terminal.say("Written: ", terminal.bold(str(contract)), f" ({counted}{left_out})")
    for request in requests:
        terminal.say("         ", terminal.bold(str(request)))
    first = shlex.quote(str(_first(written)))
    if not was_asked:
        terminal.say("Fill in the empty values, and delete the columns that must stay private.")
    else:
        if any(column.kind == "any" for column in proposal.candidates.values()):
            terminal.say("The table states no types: a column of words may be declared as numbers.")
        terminal.say(f"First: gramercy check {first}", "  (reads every row, without a charge)")
    terminal.say(f"Then: gramercy plan {first}")
    if proposal.dates is not None:
        weekly = shlex.quote(str(requests[0]))
        terminal.say(f"Then: gramercy release {first}", "  (once, for the constants)")
        terminal.say(f'Then, every week: gramercy serve {weekly} --cron "0 6 * * 1"')


_NAMES = ("contract.yaml", "request.yaml", "constants.yaml")  # the last for a growing table


def write(draft: Draft, folder: Path) -> list[Path]:
    """Write contract and requests into a folder, which may exist; never overwrites a file."""
    paths = check_absent(draft, folder)
    folds = 1  # more where the draft states enough to know that they cost nothing
    if draft.rows is not None and draft.unit is None:
        width = sum(len(column.levels or [None]) for column in draft.columns.values())
        folds = folds_of_draft(draft.rows, width, draft.release_epsilon, draft.release_delta)
    facts = {
        **vars(draft),
        "columns": draft.candidates,
        "left_out": {name: why for name, why in draft.left_out.items() if name != draft.dates},
        "source": _source(folder, draft),
        "counted": "rows" if draft.unit is None else "persons",
        "folds": folds,
    }
    templates = Environment(
        loader=PackageLoader("gramercy.cli", "draft"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  for YAML, `yaml_scalar` does it
    )
    templates.filters["yaml"] = yaml_scalar
    templates.filters["value"] = lambda value: "" if value is None else f" {yaml_scalar(value)}"
    with write_errors("--folder", folder), contextlib.ExitStack() as undo:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            text = templates.get_template(path.name).render(facts)
            with path.open("x", encoding="utf-8") as stream:
                undo.callback(path.unlink)
                stream.write(text)
        undo.pop_all()  # both were written
    return paths


def check_absent(draft: Draft, folder: Path) -> list[Path]:
    """The files to write; checked before the questions."""
    is_file = draft.database is None
    if is_file and Path(draft.source).is_dir() and folder.resolve() == Path(draft.source).resolve():
        raise families.DRAFT(
            "{folder} is the table's own folder.",
            "Choose another one with --folder.",
            folder=str(folder),
        )
    paths = [folder / name for name in (_NAMES if draft.dates else _NAMES[:2])]
    for path in paths:
        if os.path.lexists(path):
            raise families.OUTPUT(
                "{path} already exists.",
                "Move it, or choose another folder with --folder.",
                path=str(path),
            )
    check_output_folder("--folder", folder)
    return paths


def _source(folder: Path, draft: Draft) -> str:
    """The source relative to the contract's folder, unless it is absolute, a URL or a table."""
    source = draft.source
    if draft.database is not None or "://" in source or Path(source).is_absolute():
        return source
    relative = Path(os.path.relpath(Path(source).absolute(), folder.resolve())).as_posix()
    # Files of periods cannot be found by way of '..', which could leave the folder of a period.
    return os.path.abspath(source) if draft.per and relative.startswith("..") else relative
