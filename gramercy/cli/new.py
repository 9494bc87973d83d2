"""``gramercy new``: draft a contract and a request."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from jinja2 import Environment, PackageLoader, StrictUndefined

from gramercy.cli import terminal
from gramercy.cli.draft.dialogue import Dialogue, ask_yes
from gramercy.cli.draft.drafting import Draft, draft, find_series, parse_names
from gramercy.cli.draft.look import look as look_at_rows
from gramercy.cli.options import AsJson, check_output_folder, write_errors
from gramercy.common.home import Home
from gramercy.pipeline.plan.calibration import folds_of_draft
from gramercy.schemas import families
from gramercy.schemas.corrections import as_yaml
from gramercy.schemas.errors import RequestError, TableError
from gramercy.schemas.model import Model, Slug, parse
from gramercy.schemas.periods import span_of
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
    look: Annotated[
        bool,
        typer.Option(
            "--look",
            help="Look at rows too: propose levels, codes of missing values, the notation.",
        ),
    ] = False,
    no_ask: Annotated[
        bool,
        typer.Option("--no-ask", help="Ask nothing; leave unknown values empty, to be filled in."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Draft a contract and a request for a table.

    It uses the names and types of the columns, and no value of the data. On a terminal it counts
    the rows, and proposes the rest: Enter accepts what is shown. If you interrupt it, the same
    command continues. Elsewhere, what is unknown stays empty. Columns that are named like
    identifiers, dates, text or codes are left out; of a file of a monthly series, all are drafted.

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
    asks = not no_ask and sys.stdin.isatty()
    series = None if database is not None or grows is not None else _series(table, asks)
    proposal = draft(series or table, id_, names, database, grows)
    target = folder if folder is not None else Path(proposal.id)
    check_absent(proposal, target)
    if proposal.found:
        terminal.say(f"Above the names of columns: {proposal.found}.", to=terminal.err)
    if look:
        terminal.say(_LOOK, to=terminal.err)
        if not asks or ask_yes("Look at rows?", default=False):
            proposal = look_at_rows(proposal)
    dialogue = None
    if asks:
        if proposal.per is None:  # else every period has its own number
            with contextlib.suppress(TableError):
                counted = count_rows(open_source(proposal.table)) or None
                proposal = replace(proposal, counted=counted)
        dialogue = Dialogue(proposal, Home.default())
        try:
            proposal = dialogue.ask()
        except (EOFError, KeyboardInterrupt):
            terminal.say("\nYour answers are kept: the same command continues.", to=terminal.err)
            raise
    elif not proposal.published:
        raise families.DRAFT(
            "{table} has no column that is proposed for publication: {columns}.",
            "Name those to publish with --columns A,B.",
            table=table,
            columns="; ".join(f"{k}: {each.left_out}" for k, each in proposal.left_out.items()),
        )
    written = write(proposal, target)
    if dialogue is not None:
        dialogue.forget()
    if json:
        left_out = {name: column.left_out for name, column in proposal.left_out.items()}
        columns_of = {"columns": list(proposal.published), "left_out": left_out}
        files = {path.stem: str(path) for path in written}
        plan_of = f"gramercy plan {shlex.quote(str(written[-1]))}"
        terminal.print_json({**files, **columns_of, "next": plan_of})
    else:
        _say_what_next(proposal, written, was_asked=dialogue is not None)


_LOOK = (
    "--look reads some rows of every file, and proposes what they show: levels that at least ten "
    "of these rows have, codes of missing values, columns to leave out, the notation of numbers. "
    "What is chosen by looking at private rows is not protected by any privacy budget, and a "
    "contract is public: keep only what is known in the field as well. Bounds are never proposed."
)


def _series(table: str, asks: bool) -> str | None:
    """The table with placeholders, if it is a file of a series that is to be published."""
    found = find_series(table)
    if found is None:
        return None
    pattern, files = found
    span = span_of(pattern)
    terminal.say(
        f"{table}: {files} files whose names differ in a {span} match {pattern}. The draft is for "
        f"all of them: each {span} has releases and a budget of its own, which protects rows. For "
        "releases of all rows so far, see docs/how-to/growing-tables.md.",
        to=terminal.err,
    )
    question = f"Are these the {span}s of one table? (If not, the draft is for {table} as it is)"
    return pattern if not asks or ask_yes(question, default=True) else None


def _say_what_next(proposal: Draft, written: Sequence[Path], *, was_asked: bool) -> None:
    counted = "1 column" if len(proposal.published) == 1 else f"{len(proposal.published)} columns"
    left_out = f"; {len(proposal.left_out)} left out: see the file" if proposal.left_out else ""
    terminal.say("Written: ", terminal.bold(str(written[0])), f" ({counted}{left_out})")
    for request in written[1:]:
        terminal.say("         ", terminal.bold(str(request)))
    first = shlex.quote(str(written[-1]))  # of the constants, if they have a request
    if not was_asked:
        terminal.say("Fill in the empty values, and delete the columns that must stay private.")
    else:
        if any(column.kind == "any" for column in proposal.published.values()):
            terminal.say("The table states no types: a column of words may be declared as numbers.")
        terminal.say(f"First: gramercy check {first}", "  (reads every row, without a charge)")
    terminal.say(f"Then: gramercy plan {first}")
    if proposal.dates is not None:
        terminal.say(f"Then: gramercy release {first}", "  (once, for the constants)")
        weekly = shlex.quote(str(written[1]))
        terminal.say(f'Then, every week: gramercy serve {weekly} --cron "0 6 * * 1"')


_NAMES = ("contract.yaml", "request.yaml", "constants.yaml")  # the last for a growing table


def write(draft: Draft, folder: Path) -> list[Path]:
    """Write contract and requests into a folder, which may exist; never overwrites a file."""
    paths = check_absent(draft, folder)
    folds = 1  # more where the draft states enough to know that they cost nothing
    if draft.rows is not None and draft.unit is None:
        spent = draft.release_epsilon, draft.release_delta
        folds = folds_of_draft(draft.rows, draft.width, *spent)
    facts = {
        **vars(draft),
        "columns": draft.published,
        "left_out": draft.left_out,
        "format": draft.format,
        "constants": draft.constants,
        "source": _source(folder, draft),
        "counted": "rows" if draft.unit is None else "persons",
        "folds": folds,
    }
    templates = Environment(
        loader=PackageLoader("gramercy.cli", "draft"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  for YAML, `as_yaml` does it
    )
    templates.filters["yaml"] = as_yaml
    templates.filters["value"] = lambda value: "" if value is None else f" {as_yaml(value)}"
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
