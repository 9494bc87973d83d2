"""The public report: one self-contained page, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from gramercy.archive.estimate_bundle import EstimateBundle
from gramercy.archive.release_bundle import ReleaseBundle, rows_file, stems
from gramercy.estimators.noise.spectrum import spectrum
from gramercy.estimators.tuning.stability import DRAWS
from gramercy.reports import figures
from gramercy.reports.correlations import INSIDE, correlations
from gramercy.reports.estimate_summary import Shown
from gramercy.reports.page_tables import groups, strongest
from gramercy.reports.second_look import edges_again, worth
from gramercy.reports.words import (
    best_guess,
    largest_of_noise,
    notes,
    shown_name,
    the_attack,
    what_it_is,
)

if TYPE_CHECKING:
    from jinja2 import Environment


def release_page(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> str:
    """The page of a release and of estimates from it.

    Parameters
    ----------
    release
        As read back, its seal verified.
    estimates
        In the order in which the page shows them.

    Returns
    -------
    str
        HTML that asks for nothing from anywhere; the same for the same bundles.
    """
    facts = release.manifest
    p = len(facts.names)
    found = spectrum(release.unbiased, release.repaired, facts.noise, facts.rows.value)
    seen = correlations(release)
    pairs = seen.hidden[np.triu_indices(len(seen.names), 1)]
    drawn = [Shown.of(each, edges_again(release, each)) for each in estimates]
    return render(
        "release.html",
        facts=facts,
        stem=stems(facts)[0],
        repair=release.repair,
        quantity="partial correlations" if facts.kind == "precision" else "correlations",
        rows_file=rows_file(facts),
        sha256=release.sha256,
        notes=notes(release, found),
        guess=best_guess(facts.guarantee),
        attack=the_attack(facts.neighbours, facts.unit),
        attacker=figures.attacker(facts.guarantee),
        what_it_is=what_it_is(facts),
        heat=figures.heat_map(seen.matrix, seen.hidden, [shown_name(n) for n in seen.names]),
        about_means=seen.centred,
        inside=INSIDE,
        hidden=float(pairs.mean()) if pairs.size else 0.0,
        largest_of_noise=largest_of_noise(p * (p - 1) // 2, facts.noise.family),
        noise_sd=release.evidence.typical_noise,
        first_order=facts.noise.family == "noisy-rows",
        found=found,
        negative=int((found.released < 0).sum()),
        spectrum=figures.eigenvalues(found, release.repair),
        entries=strongest(release, seen.centred),
        pairs=p * (p - 1) // 2,
        groups=groups(release),
        worth=worth(release),
        draws=DRAWS,
        shown=[pictured(each) for each in sorted(drawn, key=lambda each: not each.sparse)],
        columns=_columns(release),
        estimates=estimates,
        parameters=parameters(facts.model_dump(mode="json")),
    )


def render(template: str, **facts: Any) -> str:
    """Fill a template of this room; everything is escaped."""
    return _environment().get_template(template).render(facts)


def pictured(shown: Shown) -> dict[str, Any]:
    """What a page says of an estimate, with the picture of its graph."""
    picture, p = Markup(), len(shown.names)
    if shown.sparse and shown.edges and shown.weights is not None:
        picture = figures.graph(shown.id, shown.weights, shown.names, shown.again)
    worked_out = {"sparse": shown.sparse, "kept": shown.kept, "others": shown.others}
    return vars(shown) | worked_out | {"picture": picture, "pairs": p * (p - 1) // 2}


def parameters(facts: Mapping[str, Any], at: str = "") -> list[tuple[str, str]]:
    """Every parameter of a manifest, by its path."""
    told: list[tuple[str, str]] = []
    for key, value in facts.items():
        path = f"{at}.{key}" if at else key
        if isinstance(value, Mapping):
            told += parameters(value, path)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            numbered = {str(place): each for place, each in enumerate(value)}
            told += parameters(numbered, path) if value else [(path, "none")]
        else:
            told.append((path, "none" if value is None else str(value)))
    return told


def _columns(release: ReleaseBundle) -> list[dict[str, Any]]:
    """Columns of the table with the diagonal entries of what they became."""
    first = int(release.manifest.intercept)
    entries = [_significant(x, 3) for x in np.diag(release.unbiased)]
    if release.manifest.noise.family == "noisy-rows":
        deviations = [_significant(x, 2) for x in np.diag(release.deviations)]
        entries = [f"{x} ± {sd}" for x, sd in zip(entries, deviations, strict=True)]
    diagonal = iter(entries[first:])
    told = []
    for column in release.manifest.columns:
        facts = column.model_dump()
        of_column = [next(diagonal) for _ in facts.get("levels", [None])]
        told.append(facts | {"diagonal": ", ".join(of_column)})
    return told


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("gramercy.reports"), autoescape=True, undefined=StrictUndefined
    )
    made.filters |= {
        "sig": _significant,
        "count": lambda number: f"{number:,.0f}",
        "capitalise": lambda text: text[:1].upper() + text[1:],
        "shown": shown_name,
        "cell": lambda value: _significant(value, 3) if isinstance(value, float) else str(value),
        "parameters": parameters,
        "bytes": _bytes,
    }
    style = (made.loader or PackageLoader("gramercy.reports")).get_source(made, "style.css")[0]
    made.globals |= {"style": Markup(style), "infinity": math.inf, "inside": INSIDE}
    return made


def _bytes(size: float) -> str:
    """A size as people write it."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _significant(number: float, digits: int) -> str:
    """A number to so many significant digits, as people write it."""
    if math.isnan(number):
        return "–"
    text = f"{number:.{digits}g}"
    if 1 <= abs(number) < 1e6 and "e" in text:
        text = f"{number:.0f}"
    if "e" not in text:
        return text.replace("-", "−")
    mantissa, _, exponent = text.partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{raised}".replace("-", "−")
