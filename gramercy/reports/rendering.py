"""Filling the templates of pages, and the way from the catalogue to each page."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from gramercy.archive.store.layout import GLOSSARY, INDEX
from gramercy.common.notation import in_symbols, message_in_symbols, significant
from gramercy.reports.correlations import NOISE_BAND
from gramercy.reports.reader_notes import display_name
from gramercy.schemas.cells import DayCells
from gramercy.schemas.derived import DerivedFacts
from gramercy.schemas.model import Model

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_DECIMALS, _LARGE = 6, 1e9  # of plain numbers


def render(template: str, **facts: Any) -> str:
    """Fill a template of `gramercy.reports`; all values are escaped."""
    return _environment().get_template(template).render(facts)


def open_table(caption: str, shown: bool = False, kind: str = "", region: str = "") -> Markup:
    """The start of a table in a region that scrolls, also by keyboard.

    A caption that is not shown is for screen readers, because a heading says the same.
    """
    return Markup(
        '<div class="scroll" role="region" aria-label="{}" tabindex="0"><table{}><caption{}>{}'
        "</caption>"
    ).format(
        region or caption,
        Markup(' class="{}"').format(kind) if kind else "",
        "" if shown else Markup(' class="unseen"'),
        caption,
    )


def plus_minus(pair: tuple[float, float], digits: int = 4) -> str:
    """A number and its standard error, with decimals that suit the error."""
    number, error = pair
    decimals = _decimals(error, number)
    if decimals is None:
        return f"{significant(number, digits)} ± {significant(error, 2)}"
    return f"{number:z.{decimals}f} ± {error:.{decimals}f}".replace("-", "−")


def with_decimals(number: float, error: float) -> str:
    """A number with decimals that suit its error."""
    decimals = _decimals(error, number)
    if decimals is None:
        return significant(number, 4)
    return f"{number:z.{decimals}f}".replace("-", "−")


def day(number: float, unit: str) -> str:
    """The date that a number in a unit of dates stands for."""
    return "–" if math.isnan(number) else DayCells.of_unit(unit).in_words(number)


def computed(column: Any) -> str:
    """The function of other columns that a column is; empty if it is in the table."""
    known = column if isinstance(column, Mapping) else vars(column)
    return DerivedFacts.model_validate(facts).in_words if (facts := known.get("derived")) else ""


def in_brackets(bounds: tuple[float, float]) -> str:
    """The bounds of an interval, with decimals that suit its width."""
    lower, upper = bounds
    if math.isinf(lower) and math.isinf(upper):
        return "unknown"
    error = (upper - lower) / 4
    return f"[{with_decimals(lower, error)}, {with_decimals(upper, error)}]"


def _decimals(error: float, number: float) -> int | None:
    """Decimals that suit an error; None where a number is better written by its digits."""
    if not (math.isfinite(number) and math.isfinite(error) and error > 0):
        return None
    decimals = max(1 - math.floor(math.log10(error)), 0)
    return None if decimals > _MOST_DECIMALS or max(abs(number), error) >= _LARGE else decimals


def manifest_parameters(manifest: Model) -> list[tuple[str, str]]:
    """Every parameter of a manifest with its path."""
    return _values(manifest.model_dump(mode="json"))


def _values(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Every value of nested data with its path."""
    listed: list[tuple[str, str]] = []
    for key, value in facts.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, Mapping):
            listed += _values(value, path)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            numbered = {str(index): entry for index, entry in enumerate(value)}
            listed += _values(numbered, path) if value else [(path, "none")]
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
        "parameters": manifest_parameters,
        "plus_minus": plus_minus,
        "in_brackets": in_brackets,
        "day": day,
        "computed": computed,
        "with_decimals": with_decimals,
        "symbols": in_symbols,
        "words": message_in_symbols,
        "bytes": _bytes,
    }
    loader = environment.loader or PackageLoader("gramercy.reports")
    sheet = Markup(loader.get_source(environment, "style.css")[0])  # noqa: S704  our own file
    environment.globals |= {"style": sheet, "infinity": math.inf, "noise_band": NOISE_BAND}
    environment.globals["table"] = open_table
    return environment


def _bytes(size: float) -> str:
    """A size with its unit."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


# The address of a page of the archive, by its name in the archive; empty if it cannot be linked to.
Links = Callable[[str], str]


def no_links(name: str) -> str:
    """The links of a page that does not know where the catalogue is: all places are plain text."""
    return ""


def links_from(*folder: str) -> Links:
    """The relative links of a page in a folder of the archive."""
    start = "/".join(folder) or "."
    return lambda name: posixpath.relpath(name, start)


@dataclass(frozen=True)
class Crumb:
    """A place on the way to a page."""

    name: str  # Its name
    # Address of its page; empty if it is the page itself, or is not known to have one
    href: str = ""


@dataclass(frozen=True)
class Navigation:
    """The navigation of a page."""

    # The places from the catalogue to the page itself, which is the last one
    crumbs: tuple[Crumb, ...]
    glossary: str = ""  # Address of the glossary, or empty


def navigation(
    links: Links,
    page: str = "",
    dataset: tuple[str, str] | None = None,
    release: tuple[str, str] | None = None,
) -> Navigation:
    """The navigation of a page about a data set and a release, each an id and a displayed name.

    `page` is its kind, and empty for the catalogue's own page of the last place.

    Examples
    --------
    >>> found = navigation(links_from("clinic"), "Plan", ("clinic", "Clinic visits"))
    >>> [(each.name, each.href) for each in found.crumbs]
    [('Catalogue', '../index.html'), ('Clinic visits', 'index.html'), ('Plan', '')]
    """
    names, folder = [("Catalogue", INDEX)], ""
    for place in (dataset, release):
        if place is not None:
            folder += f"{place[0]}/"
            names.append((place[1], folder + INDEX))
    places = names if page else names[:-1]
    current = page or names[-1][0]
    crumbs = (*(Crumb(name, links(at)) for name, at in places), Crumb(current))
    return Navigation(crumbs, links(GLOSSARY))
