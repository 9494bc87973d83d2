"""The parts of a report about analyses: a function for each kind of estimate and a line in `parts`.

Each fills the template of its name in `templates/analyses`. Graphs and precision matrices are
summarised by `reports.estimate_summary`. A page shows
the first lines and columns; the files have all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from gramercy.archive.bundles.bundle_kinds import EstimateBundle, ReleaseBundle
from gramercy.common.notation import shortened_pair, significant
from gramercy.common.pictures import small_graphs
from gramercy.common.plotting import ACCENT, FAINT, figure, forest, scree, with_words
from gramercy.estimators.joint_graphical_lasso import weights_of
from gramercy.estimators.released_table import ReleasedTable
from gramercy.reports.marginal_tables import BARS, overlaid_bars
from gramercy.reports.reader_notes import display_name
from gramercy.reports.rendering import render

Part = Callable[[ReleaseBundle, EstimateBundle], dict[str, Any]]


def analyses(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> list[Markup]:
    """The part of every analysis among the estimates, in their order."""
    rendered = []
    for estimate in estimates:
        facts, of_group = estimate.manifest, release.rows_of(estimate.group)
        part = part_of(estimate)
        if part in parts:
            common = {
                "estimate": facts.estimate,
                "group": estimate.group,
                "tuning": facts.tuning,
                "counted": of_group.manifest.count_key,
                "clipped": of_group.evidence.radius is not None,
            }
            shown = common | parts[part](of_group, estimate)
            rendered.append(Markup(render(f"analyses/{part}.html", **shown)))
    return rendered


def part_of(estimate: EstimateBundle) -> str:
    """The name of the part that shows an estimate, if it is in `parts`: its kind, mostly."""
    return "differences" if "differences" in estimate.tables else estimate.manifest.kind


def components(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """Principal components: scree with the noise band, and loadings."""
    most_columns, most_components = 60, 8
    tables, tuning = estimate.tables, estimate.manifest.tuning
    used = tables["columns"]["used"] == "yes"
    names = list(tables["columns"]["column"][used])
    number = int(tuning["components"])
    loadings, errors = (
        tables["loadings"][value].to_numpy(dtype=np.float64).reshape(number, len(names))
        for value in ("loading", "standard_error")
    )
    known = [k for k in range(number) if np.isfinite(loadings[k]).all()]
    shown = known[:most_components]
    return {
        "scale": str(estimate.manifest.estimator["scale"]),
        "number": number,
        "total": len(tables["eigenvalues"]),
        "scree": _scree(estimate.manifest.estimate, tables["eigenvalues"], tuning["noise_edge"]),
        "shares": tables["shares"].to_dict("records"),
        "components": [k + 1 for k in shown],
        "unknown": number - len(known),
        "lines": [
            (name, [(float(loadings[k, at]), float(errors[k, at])) for k in shown])
            for at, name in enumerate(names[:most_columns])
        ],
        "columns": len(names),
        "left_out": list(tables["columns"]["column"][~used]),
        "unit": release.evidence.unit,
    }


def factors(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """A factor analysis: loadings with intervals, communalities, and the variance of factors."""
    most_columns, most_factors = 60, 8
    tables, number = estimate.tables, int(estimate.manifest.tuning["factors"])
    used = tables["columns"]["used"] == "yes"
    columns = tables["columns"][used]
    loadings = tables["loadings"].to_dict("records")
    variance = tables["variance"].to_dict("records")
    known = [k for k in range(number) if np.isfinite(variance[k]["ss_loadings"])]
    shown = known[:most_factors]
    return {
        "rotation": str(estimate.manifest.estimator["rotation"]),
        "number": number,
        "total": len(tables["eigenvalues"]),
        "law": loadings[0]["law"] if loadings else "",
        "variance": [variance[k] for k in shown],
        "lines": [
            (line, [loadings[k * len(columns) + at] for k in shown])
            for at, line in enumerate(columns.to_dict("records")[:most_columns])
        ],
        "columns": len(columns),
        "unknown": number - len(known),
        "pairs": tables["factor_correlations"].dropna().to_dict("records"),
        "heywood": list(columns["column"][columns["heywood"] == "yes"]),
        "left_out": list(tables["columns"]["column"][~used]),
    }


def reliability(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """Alpha and omega of a sum of columns, and what each of them adds."""
    most_items, tables = 60, estimate.tables
    return {
        "coefficients": tables["coefficients"].to_dict("records"),
        "lines": tables["items"][:most_items].to_dict("records"),
        "total": len(tables["items"]),
    }


def _scree(name: str, eigenvalues: pd.DataFrame, edge: float) -> Markup:
    """Eigenvalues as released and corrected, over the band of the noise."""
    title = "Eigenvalues, largest first, and the band in which noise alone may produce them."
    released, corrected = (eigenvalues[each].to_numpy() for each in ("eigenvalue", "corrected"))
    with figure(f"scree-{name}", title, 5.2, 3.0) as drawing:
        scree(released, corrected, edge, drawing.axes)
    return drawing.svg


def cross_tables(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """Tables of counts: heat tables, and tests of independence."""
    cells, tests = estimate.tables["cells"], estimate.tables.get("tests")
    grouped = list(cells.groupby(["rows", "columns"], sort=False))
    return {
        "tables": [
            heat_table(str(names[0]), str(names[1]), frame, tests) for names, frame in grouped[:10]
        ],
        "total": len(grouped),
        # Otherwise what clipping took away is published, and counted.
        "weighted": release.evidence.lost is None,
    }


def heat_table(
    rows: str, columns: str, frame: pd.DataFrame, tests: pd.DataFrame | None
) -> dict[str, Any]:
    """The table of two columns of levels, or of one, from the lines of an estimate.

    Each of its lines has a level, and its cells: ``count``, its interval ``lower`` and ``upper``,
    and ``heat``, the strength of the colour in per cent. It is `cut` if some are left out.
    """
    darkest, most_lines = 55, 30
    heads, firsts = list(dict.fromkeys(frame["column"])), list(dict.fromkeys(frame["row"]))
    margins, other_margins = firsts[-2:], heads[-2:] if columns else []
    inner = frame[~frame["row"].isin(margins) & ~frame["column"].isin(other_margins)]
    largest = float(inner["count"].max())
    by_name = {(each["row"], each["column"]): each for each in frame.to_dict("records")}
    shown, lines = heads[-most_lines:], []
    for row in firsts[-most_lines:]:
        cells = []
        for column in shown:
            each = by_name[row, column]
            plain = row in margins or column in other_margins or not largest > 0
            bounds = {"lower": each["count_lower"], "upper": each["count_upper"]}
            heat = 0 if plain else round(darkest * each["count"] / largest)
            cells.append({"count": each["count"], **bounds, "heat": heat})
        lines.append((row, cells))
    test: dict[str, Any] | None = None
    if columns and tests is not None:
        found = tests[(tests["rows"] == rows) & (tests["columns"] == columns)].iloc[0]
        keys = ("chi_squared", "freedom", "p_value", "cramers_v", "least_expected")
        test = {key: float(found[key]) for key in keys} | {"left_out": str(found["left_out"])}
    cut = len(heads) > most_lines or len(firsts) > most_lines
    names = {"rows": rows, "columns": columns}
    return names | {"head": shown, "lines": lines, "cut": cut, "test": test}


def pooled(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """A pool: the weights of the releases, and how the errors fall."""
    facts, tables = estimate.manifest, estimate.tables
    releases, tuning = tables["releases"], facts.tuning
    own, error = releases.iloc[0], math.hypot(tuning["noise"], tuning["sampling_error"])
    shown = releases.iloc[:30]
    columns = tables["columns"].iloc[:60].to_dict("records") if "columns" in tables else []
    return {
        "lines": shown.to_dict("records"),
        "total": len(releases),
        "error": error,
        "noise_share": tuning["noise"] / own["noise"] if own["noise"] > 0 else None,
        "error_share": error / own["standard_error"] if own["standard_error"] > 0 else None,
        "picture": _errors(facts.estimate, shown, tuning["noise"], error),
        "columns": columns,
        "caveats": tables["caveats"].to_dict("records") if "caveats" in tables else [],
        "weighted": release.evidence.lost is None,
    }


def _errors(name: str, releases: pd.DataFrame, noise: float, error: float) -> Markup:
    """Typical errors of each release and of the pool, the pool at the bottom."""
    places = np.arange(len(releases) + 1)[::-1]
    labels = [
        f"{each['release']} ({significant(each['weight'], 2)})"
        for each in releases.to_dict("records")
    ]
    title = "Typical error of an entry: of each release, and of the pool."
    with figure(f"pool-{name}", title, 5.6, 0.9 + 0.32 * len(places)) as drawing:
        axes = drawing.axes
        both = [*releases["standard_error"], error]
        axes.barh(places, both, height=0.7, color=FAINT, alpha=0.35, label="noise and sampling")
        axes.barh(places, [*releases["noise"], noise], height=0.35, color=ACCENT, label="noise")
        axes.set_yticks(places, [*labels, "pool"])
        axes.set_xlabel("typical standard deviation of an entry")
        axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return drawing.svg


def quadratic_discriminant(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """Quadratic discriminant analysis: the classes and their means."""
    most_columns = 40
    facts, tables, by = estimate.manifest, estimate.tables, release.manifest.by
    features = list(dict.fromkeys(tables["means"]["feature"]))
    return {
        "by": "" if by is None else by.name,
        "precision": str(facts.estimator["precision"]),
        "prior": str(facts.estimator["prior"]),
        "classes": tables["classes"].to_dict("records"),
        "means": {
            name: list(zip(own["mean"], own["sd"], strict=True))[:most_columns]
            for name, own in tables["means"].groupby("class", sort=False)
        },
        "features": features[:most_columns],
        "number": len(features),
    }


def regression(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """A regression: its coefficients as a plot and as a table."""
    most_terms = 40
    tables, facts = estimate.tables, estimate.manifest
    coefficients, terms = tables["coefficients"], tables["terms"]
    by_role = {
        role: list(zip(own["column"], own["level"], strict=True))
        for role, own in terms.groupby("role")
    }
    shown = tables["standardised"].iloc[:most_terms]
    selects = "selected" in coefficients
    return {
        "outcome": str(terms["column"].iloc[0]),
        "level": facts.tuning["level"],
        "law": str(tables["fit"]["errors"].iloc[0]),
        "fit": dict(zip(tables["fit"]["quantity"], tables["fit"]["value"], strict=True)),
        "picture": _forest(facts.estimate, shown) if shown["estimate"].notna().any() else None,
        "lines": coefficients.iloc[: 1 + most_terms].to_dict("records"),
        "total": len(coefficients),
        "selects": selects,
        "selected": int((coefficients["selected"].iloc[1:] == "yes").sum())
        if selects
        else len(coefficients) - 1,
        "unknown": int((coefficients["known"] == "no").sum()),
        "references": by_role.get("reference", []),
        "derived": by_role.get("derived", []),
        "left_out": [name for name, _ in by_role.get("left out", [])],
        "has_ratios": "ratio" in coefficients,
        "corrected": any(share < 1 for share in release.evidence.present),
        "together": release.evidence.missing is not None,
    }


def _forest(name: str, shown: pd.DataFrame) -> Markup:
    """Standardised coefficients with their intervals, the first term on top."""
    title = "Standardised coefficients with their intervals."
    with figure(f"forest-{name}", title, 5.6, 0.9 + 0.22 * len(shown)) as drawing:
        numbers = shown[["estimate", "lower", "upper"]].to_numpy().T
        terms = [display_name(term) for term in shown["term"]]
        with_words(forest(numbers, terms, drawing.axes), x="standard deviations of the outcome")
    return drawing.svg


def summary(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """The summary table: means and standard deviations with intervals."""
    shown = {
        name: estimate.tables.get(name, pd.DataFrame())
        for name in ("columns", "levels", "derived", "groups")
    }
    tables = {name: table.head(100).to_dict("records") for name, table in shown.items()}
    return {
        "tables": tables,
        "by": estimate.manifest.estimator["by"],
        "law": next(lines[0]["law"] for lines in tables.values() if lines and "law" in lines[0]),
        "moved": any(each["clipping"] != 0 for each in tables["columns"]),
    }


def synthetic(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """Synthetic rows: their distributions and correlations, compared with the release."""
    tables, known = estimate.tables, ReleasedTable(release.evidence)
    rows, marginals = tables["rows"], tables["marginals"]
    return {
        "rows": len(rows),
        "lines": [
            _synthetic_column(str(name), rows[name], marginals[marginals["column"] == name], known)
            for name in rows.columns[:60]
        ],
        "columns": len(rows.columns),
        "correlations": _correlations(estimate.manifest.estimate, tables["correlations"]),
    }


def _synthetic_column(
    name: str, cells: pd.Series, marginals: pd.DataFrame, known: ReleasedTable
) -> dict[str, Any]:
    """One column: its numbers in the release and in the synthetic rows, and both distributions.

    The picture is empty without a published distribution, and `more` counts levels left out.
    """
    most_levels = 20
    levels = marginals["level"].notna()
    labels = marginals["level"].where(levels, marginals["quantity"]).astype(str)
    numbers = (marginals[each].astype(float) for each in ("release", "synthetic"))
    quantities = list(zip(labels, *numbers, strict=True))
    if levels.any():
        shares = marginals[levels]
        picture = overlaid_bars(shares["release"].to_numpy(), shares["synthetic"].to_numpy())
        left_out = max(len(shares) - most_levels, 0)
        kept = quantities[: len(shares) - left_out] + quantities[len(shares) :]
        return {"column": name, "picture": picture, "quantities": kept, "more": left_out}
    picture, present = Markup(), cells.dropna().to_numpy(dtype=np.float64)
    distribution = known.distribution(name) if present.size else None
    if distribution is not None:
        # Without the share of the synthetic cells at each end that would stretch the picture.
        low, high = np.quantile(present, [0.005, 1 - 0.005])
        edges = np.linspace(low, high if high > low else low + 1.0, BARS + 1)
        drawn = np.histogram(present, edges)[0].astype(np.float64)
        picture = overlaid_bars(distribution.counts_within(edges), drawn)
    return {"column": name, "picture": picture, "quantities": quantities, "more": 0}


def _correlations(name: str, correlations: pd.DataFrame) -> Markup:
    """Correlations of the synthetic rows over those of the release."""
    if correlations.empty:
        return Markup()
    title = "Correlations of the synthetic rows over those of the release"
    with figure(f"synthetic-{name}", title, 3.6, 3.4) as drawing:
        axes = drawing.axes
        axes.plot([-1, 1], [-1, 1], color=FAINT, lw=1)
        axes.plot(correlations["release"], correlations["synthetic"], ".", color=ACCENT, ms=4)
        axes.set_xlim(-1, 1)
        axes.set_ylim(-1, 1)
        axes.set_xlabel("release")
        axes.set_ylabel("synthetic rows")
    return drawing.svg


def joint_graph(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """Graphs of several tables: one picture for each, and the edges that they share."""
    most_lines, most_tables = 40, 8
    tables, names = estimate.tables["tables"], list(estimate.tables["columns"]["column"])
    used = list(tables["table"][tables["status"] == "used"])
    edges = estimate.tables["edges"]
    wide = edges.pivot(index=["row", "column"], columns="table", values="weight")
    wide = wide.reindex(columns=used)
    order = pd.DataFrame({"tables": wide.count(axis=1), "size": wide.abs().max(axis=1)})
    wide = wide.loc[order.sort_values(["tables", "size"], ascending=False, kind="stable").index]
    shown = used[:most_tables]
    return {
        "tables": tables.to_dict("records"),
        "structure": str(estimate.manifest.estimator["structure"]),
        "picture": small_graphs(
            estimate.manifest.estimate,
            {name: weights_of(edges, name, names) for name in shown},
            names,
        ),
        "shown": shown,
        "lines": [
            (row, column, [None if np.isnan(x) else x for x in values[shown]], values.count())
            for (row, column), values in wide.head(most_lines).iterrows()
        ],
        "number": len(used),
        "total": len(wide),
        "shared": int((wide.count(axis=1) == len(used)).sum()),
        "own": int((wide.count(axis=1) == 1).sum()),
    }


def graph_differences(release: ReleaseBundle, estimate: EstimateBundle) -> dict[str, Any]:
    """What differs between the graphs of two tables: the found differences with intervals."""
    most_lines = 30
    facts, table = estimate.manifest, estimate.tables["differences"]
    rate = facts.tuning["rate"]
    found = table[table["adjusted"] <= rate]
    shown = found if len(found) else table
    own = f"{release.manifest.dataset.id}/{release.manifest.release}"
    first, second = facts.estimator.get("between") or (own, *facts.sources)
    pairs = [
        shortened_pair(display_name(a), display_name(b))
        for a, b in zip(shown["row"], shown["column"], strict=True)
    ]
    numbers = shown[["difference", "lower", "upper"]].to_numpy(dtype=np.float64).T
    title = "Differences of partial correlations with their intervals, the surest first."
    height = 0.9 + 0.22 * min(len(shown), most_lines)
    with figure(f"differences-{facts.estimate}", title, 5.6, height) as drawing:
        drawn = forest(numbers[:, :most_lines], pairs[:most_lines], drawing.axes)
        with_words(drawn, x="difference of partial correlations")
    return {
        "first": first,
        "second": second,
        "rate": rate,
        "found": len(found),
        "tested": len(table),
        "untested": int(facts.tuning["untested"]),
        "picture": drawing.svg if len(table) else None,
        "lines": shown.head(most_lines).to_dict("records"),
    }


parts: Mapping[str, Part] = {
    "joint-graph": joint_graph,
    "differences": graph_differences,
    "quadratic-discriminant": quadratic_discriminant,
    "regression": regression,
    "components": components,
    "factors": factors,
    "reliability": reliability,
    "cross-tables": cross_tables,
    "summary": summary,
    "synthetic": synthetic,
    "pooled": pooled,
}
