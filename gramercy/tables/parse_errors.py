"""Errors of parsers, which quote what they parsed, become errors that name the file alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gramercy.schemas.errors import GramercyError, TableError
from gramercy.tables.parquet_guard.thrift import TooHeavyError
from gramercy.tables.unpacking import UnpackError

_PACKED = {
    "CSV": "Pack one CSV file alone, with gzip, bzip2, zip or xz up to -9.",
    "Parquet": "Write it anew, compressed by zstd.",
}


@contextmanager
def parsing(shown: str, kind: str) -> Iterator[None]:
    """Turn a parser's error, which may quote the data, into one that names the file alone."""
    try:
        yield
    except (GramercyError, GeneratorExit):
        raise
    except PermissionError:
        failure = TableError(
            f"{shown}: cannot be opened.", "Give yourself the permission to read it."
        )
    except TooHeavyError:
        failure = TableError(
            f"{shown}: says more of itself than fits into memory.",
            "Write it anew, in fewer and larger row groups.",
        )
    except UnpackError:
        failure = TableError(f"{shown}: is not packed in a way that is read.", _PACKED[kind])
    except Exception:
        failure = TableError(f"{shown}: cannot be read as {kind}.", "Write the file anew.")
    else:
        return
    raise failure from None  # the error that is being handled may quote data and URLs
