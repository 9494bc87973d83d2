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

    APILogHandler().flush()  # log records may still be queued
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
            content = file.read_bytes()
            encoded = json.loads(content)["result"] if content.startswith(b"{") else content
            yield cloudpickle.loads(base64.b64decode(encoded))


def object_texts(value: Any, depth: int = 6) -> Iterator[str]:
    """An object and everything it refers to, as text; for exceptions also causes and frames."""
    yield repr(value)
    if depth == 0 or isinstance(value, str | bytes | int | float | type(None)):
        return
    children = [*vars(value).values()] if hasattr(value, "__dict__") else []
    if isinstance(value, BaseException):
        children += [*value.args, value.__cause__, value.__context__]
        traceback = value.__traceback__
        while traceback is not None:
            children += traceback.tb_frame.f_locals.values()
            traceback = traceback.tb_next
    if isinstance(value, dict):
        children += [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        children += value
    for child in children:
        yield from object_texts(child, depth - 1)
