"""A draft as the files of a contract and a request."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from gramercy.cli.draft.drafting import Draft, yaml_scalar
from gramercy.cli.options import check_output_folder, write_errors
from gramercy.pipeline.plan.calibration import folds_of_draft
from gramercy.schemas import families

_NAMES = ("contract.yaml", "request.yaml")


def write(draft: Draft, folder: Path) -> tuple[Path, Path]:
    """Write contract and request into a folder, which may exist; never overwrites a file."""
    contract, request = check_absent(draft, folder)
    folds = 1  # more where the draft states enough to know that they cost nothing
    if draft.rows is not None and draft.unit is None:
        width = sum(len(column.levels or [None]) for column in draft.columns.values())
        folds = folds_of_draft(draft.rows, width, draft.release_epsilon, draft.release_delta)
    facts = {
        **vars(draft),
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
        for path in (contract, request):
            text = templates.get_template(path.name).render(facts)
            with path.open("x", encoding="utf-8") as stream:
                undo.callback(path.unlink)
                stream.write(text)
        undo.pop_all()  # both were written
    return contract, request


def check_absent(draft: Draft, folder: Path) -> tuple[Path, Path]:
    """The files to write; checked before the questions."""
    is_file = draft.database is None
    if is_file and Path(draft.source).is_dir() and folder.resolve() == Path(draft.source).resolve():
        raise families.DRAFT(
            "{folder} is the table's own folder.",
            "Choose another one with --folder.",
            folder=str(folder),
        )
    contract, request = (folder / name for name in _NAMES)
    for path in (contract, request):
        if os.path.lexists(path):
            raise families.OUTPUT(
                "{path} already exists.",
                "Move it, or choose another folder with --folder.",
                path=str(path),
            )
    check_output_folder("--folder", folder)
    return contract, request


def _source(folder: Path, draft: Draft) -> str:
    """The source relative to the contract's folder, unless it is absolute, a URL or a table."""
    source = draft.source
    if draft.database is not None or "://" in source or Path(source).is_absolute():
        return source
    relative = Path(os.path.relpath(Path(source).absolute(), folder.resolve())).as_posix()
    # Files of periods cannot be found by way of '..', which could leave the folder of a period.
    return os.path.abspath(source) if draft.per and relative.startswith("..") else relative
