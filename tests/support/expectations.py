"""Great Expectations in the process of a test, without its warnings and logs."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def great_expectations() -> Iterator[Any]:
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            import great_expectations as gx

            yield gx
        finally:
            logging.disable(before)
