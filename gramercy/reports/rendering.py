"""Filling the templates of pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from gramercy.common.notation import significant
from gramercy.reports.correlations import NOISE_BAND
from gramercy.reports.explanations import display_name

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **facts: Any) -> str:
    """Fill a template of `gramercy.reports`; all values are escaped."""
    return _environment().get_template(template).render(facts)


def parameters(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Every parameter of a manifest with its path."""
    listed: list[tuple[str, str]] = []
    for key, value in facts.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, Mapping):
            listed += parameters(value, path)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            numbered = {str(index): entry for index, entry in enumerate(value)}
            listed += parameters(numbered, path) if value else [(path, "none")]
        else:
            listed.append((path, "none" if value is None else str(value)))
    return listed


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("gramercy.reports"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters |= {
        "sig": significant,
        "count": lambda number: f"{number:,.0f}",
        "capitalise": lambda text: text[:1].upper() + text[1:],
        "display_name": display_name,
        "cell": lambda value: significant(value, 3) if isinstance(value, float) else str(value),
        "parameters": parameters,
        "bytes": _bytes,
    }
    loader = environment.loader or PackageLoader("gramercy.reports")
    sheet = Markup(loader.get_source(environment, "style.css")[0])  # noqa: S704  our own file
    environment.globals |= {"style": sheet, "infinity": math.inf, "noise_band": NOISE_BAND}
    return environment


def _bytes(size: float) -> str:
    """A size with its unit."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
