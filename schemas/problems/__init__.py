"""All problem types: one module for each area, which states its range of codes.

To add one, take the next free code of the range; `gramercy explain` and the reference then list it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from gramercy.schemas.problem import Problem


@cache
def catalogue() -> Mapping[str, Problem[..., Any]]:
    """Every problem type by its code, in order of codes.

    Raises
    ------
    TypeError
        If two problem types have the same code.
    """
    by_code: dict[str, Problem[..., Any]] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        for each in vars(import_module(module.name)).values():
            if isinstance(each, Problem) and by_code.setdefault(each.code, each) is not each:
                raise TypeError(f"{each.code}: {each.name} and {by_code[each.code].name}")
    return MappingProxyType(dict(sorted(by_code.items())))
