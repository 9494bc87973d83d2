"""Write the tables of the installed Prefect, as its migrations make them.

Run after ``make lock`` has changed Prefect's version: ``.venv/bin/python tools/prefect_tables.py``.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from gramercy.flows.new_database import TABLES, header

_MIGRATE = (
    "import asyncio; from prefect.server.database import provide_database_interface as database; "
    "asyncio.run(database().create_db())"
)


def migrated_tables() -> str:
    """The text of ``prefect_tables.sql``: what Prefect's migrations make of no database."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"PREFECT_HOME": home}
        subprocess.run([sys.executable, "-c", _MIGRATE], env=environment, check=True)  # noqa: S603
        with contextlib.closing(sqlite3.connect(Path(home) / "prefect.db")) as connection:
            statements = [re.sub(r"[ \t]+\n", "\n", each) for each in connection.iterdump()]
    return "\n".join([header(), *statements]) + "\n"


if __name__ == "__main__":
    TABLES.write_text(migrated_tables(), encoding="utf-8", newline="\n")
