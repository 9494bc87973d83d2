"""Everything that Prefect stores, to be searched for private values."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from typing import Any


def prefect_texts() -> Iterator[str]:
    """Everything in Prefect's database, result storage and other files, as text."""
    from prefect.logging.handlers import APILogHandler
    from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL, get_current_settings

    APILogHandler().flush()  # what is still queued
    url = PREFECT_API_DATABASE_CONNECTION_URL.value()
    path = str(getattr(url, "get_secret_value", lambda: url)()).split("///")[1]
    with sqlite3.connect(path) as db:
        yield "\n".join(db.iterdump())
    for file in get_current_settings().home.rglob("*"):
        if file.is_file() and ".db" not in file.name:
            yield file.read_bytes().decode("latin-1")


def prefect_results() -> Iterator[object]:
    """Every result in Prefect's storage, unpickled."""
    import cloudpickle
    from prefect.settings import get_current_settings

    for file in get_current_settings().results.local_storage_path.rglob("*"):
        if file.is_file():
            held = file.read_bytes()
            text = json.loads(held)["result"] if held.startswith(b"{") else held
            yield cloudpickle.loads(base64.b64decode(text))


def object_texts(thing: Any, depth: int = 6) -> Iterator[str]:
    """An object and everything it refers to, as text; of exceptions also causes and frames."""
    yield repr(thing)
    if depth == 0 or isinstance(thing, str | bytes | int | float | type(None)):
        return
    inner = [*vars(thing).values()] if hasattr(thing, "__dict__") else []
    if isinstance(thing, BaseException):
        inner += [*thing.args, thing.__cause__, thing.__context__]
        frames = thing.__traceback__
        while frames is not None:
            inner += frames.tb_frame.f_locals.values()
            frames = frames.tb_next
    if isinstance(thing, dict):
        inner += [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inner += thing
    for each in inner:
        yield from object_texts(each, depth - 1)
