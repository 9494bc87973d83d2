"""Replace errors of parsers, which quote private values, by errors that name only the file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError
from gramercy.tables.formats.decompression import DecompressionError


@contextmanager
def redact_parser_errors(
    file: str, file_format: Literal["CSV", "Parquet", "Delta"]
) -> Iterator[None]:
    """Replace any error of a parser by a `TableError` that names only the file.

    Parameters
    ----------
    file
        The file's name in errors.
    file_format
        What the file should be.
    """
    error: GramercyError
    try:
        yield
    except GeneratorExit:
        raise
    except GramercyError as caught:
        error = caught
    except PermissionError:
        error = families.FILE(
            "{file}: permission denied.",
            "Ask for permission to read it.",
            file=file,
        )
    except DecompressionError:
        error = families.FILE(
            "{file}: this kind of compression is not supported.",
            "Compress a single CSV file by gzip, bzip2, zip, or xz up to level -9.",
            file=file,
        )
    except Exception as caught:
        error = families.FILE(
            "{file}: cannot be read as {format}.",
            "Write the file again.",
            file=file,
            format=file_format,
        )
        if isinstance(caught, OSError) and caught.errno == errno.EIO:
            error = wordings.file_not_accessible(file, os.strerror(errno.EIO))
    else:
        return
    try:
        raise error from None
    finally:  # raising sets it to the handled error, which may quote data and URLs
        error.__context__ = None
