"""The public report of a release: one self-contained page, from public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle, stems
from gramercy.common.graph_figure import graph
from gramercy.common.heat_maps import FEWEST, heat_map
from gramercy.common.notation import significant
from gramercy.estimators.noise.spectrum import spectrum
from gramercy.estimators.tuning.stability import DRAWS
from gramercy.reports import figures
from gramercy.reports.analyses import analyses, parts
from gramercy.reports.correlations import NOISE_BAND, correlations
from gramercy.reports.estimate_summary import EstimateSummary
from gramercy.reports.explanations import (
    attack_scenario,
    best_attacker_accuracy,
    display_name,
    matrix_description,
    median_largest_noise,
    reader_notes,
)
from gramercy.reports.marginal_tables import marginal_table
from gramercy.reports.navigation import report_navigation
from gramercy.reports.own_columns import meaning_notes, own_columns, sampling_law
from gramercy.reports.page_tables import groups, strongest
from gramercy.reports.release_quality import edge_stability, effective_rows, meaningless_pairs
from gramercy.reports.rendering import manifest_parameters, render
from gramercy.reports.row_groups import MOST_PICTURES, row_groups


def release_page(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> str:
    """The page of a release and of estimates from it.

    Parameters
    ----------
    release
        The release, its seal verified.
    estimates
        In the order of the page.

    Returns
    -------
    str
        Self-contained HTML, a function of the bundles alone.
    """
    facts = release.manifest
    p = len(facts.names)
    eigenvalues = spectrum(release.unbiased, release.repaired, facts.noise, facts.rows.value)
    released = correlations(release)
    pairs = released.hidden[np.triu_indices(len(released.names), 1)]
    summaries = [
        EstimateSummary.of(each, edge_stability(rows, each), meaningless_pairs(rows))
        for each in estimates
        for rows in [release.rows_of(each.group)]
        if each.manifest.kind not in parts
    ]
    labels = [display_name(name) for name in released.names]
    return render(
        "release.html",
        navigation=report_navigation(facts),
        facts=facts,
        stem=stems(facts)[0],
        repair=release.repair,
        quantity=facts.publication.quantity,
        rows_file=facts.publication.rows_file,
        sha256=release.sha256,
        notes=[*meaning_notes(release), *reader_notes(release, eigenvalues)],
        accuracy=best_attacker_accuracy(facts.guarantee),
        attack=attack_scenario(facts.neighbours, facts.privacy_unit),
        attacker=figures.attacker(facts.guarantee),
        matrix_description=matrix_description(facts),
        heat=heat_map(released.matrix, released.hidden, labels),
        clustered=len(labels) >= FEWEST,
        about_means=released.centred,
        corrected=released.corrected,
        own=own_columns(release),
        marginals=marginal_table(release),
        sampling_law=sampling_law(release),
        noise_band=NOISE_BAND,
        hidden=float(pairs.mean()) if pairs.size else 0.0,
        median_largest_noise=median_largest_noise(p * (p - 1) // 2, facts.noise.family),
        noise_sd=release.evidence.typical_noise,
        first_order=facts.noise.family == "noisy-rows",
        eigenvalues=eigenvalues,
        negative=int((eigenvalues.released < 0).sum()),
        spectrum=figures.eigenvalues(eigenvalues, release.repair),
        entries=strongest(release, released.centred),
        pairs=p * (p - 1) // 2,
        groups=groups(release),
        row_groups=row_groups(release),
        most_pictures=MOST_PICTURES,
        effective_rows=effective_rows(release),
        draws=DRAWS,
        summaries=[
            with_figure(each) for each in sorted(summaries, key=lambda each: not each.sparse)
        ],
        analyses=analyses(release, estimates),
        columns=_columns(release),
        estimates=estimates,
        parameters=manifest_parameters(facts),
    )


def with_figure(summary: EstimateSummary) -> dict[str, Any]:
    """The summary of an estimate, with a figure of its graph."""
    picture, p = Markup(), len(summary.names)
    if summary.sparse and summary.edges and summary.weights is not None:
        picture = graph(summary.id, summary.weights, summary.names, summary.stability)
    return vars(summary) | {
        "sparse": summary.sparse,
        "stable_edges": summary.stable_edges,
        "new_edge_rate": summary.new_edge_rate,
        "picture": picture,
        "pairs": p * (p - 1) // 2,
    }


def _columns(release: ReleaseBundle) -> list[dict[str, Any]]:
    """Columns of the table with their entries on the diagonal of the matrix."""
    first = int(release.manifest.intercept)
    entries = [significant(x, 3) for x in np.diag(release.unbiased)]
    if release.manifest.noise.family == "noisy-rows":
        deviations = [significant(x, 2) for x in np.diag(release.deviations)]
        entries = [f"{x} ± {sd}" for x, sd in zip(entries, deviations, strict=True)]
    diagonal = iter(entries[first:])
    columns = []
    for column in release.manifest.columns:
        facts = column.model_dump()
        of_column = [next(diagonal) for _ in facts.get("levels", [None])]
        columns.append(facts | {"diagonal": ", ".join(of_column)})
    return columns
