"""The public report of a release: one self-contained page, from public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from gramercy.archive.bundles.bundle_kinds import EstimateBundle, ReleaseBundle, stems
from gramercy.archive.store.layout import INDEX
from gramercy.common.notation import significant
from gramercy.common.pictures import FEWEST, heat_map
from gramercy.estimators.tuning.stability import DRAWS
from gramercy.reports import figures
from gramercy.reports.analyses import analyses, part_of, parts
from gramercy.reports.column_summaries import (
    MOST_PICTURES,
    column_labels,
    level_means,
    own_columns,
    row_groups,
    sampling_law,
)
from gramercy.reports.correlations import correlations, effective_rows, largest_entries
from gramercy.reports.directions import directions
from gramercy.reports.estimate_summary import (
    EstimateSummary,
    meaningless_pairs,
    with_figure,
)
from gramercy.reports.marginal_tables import marginal_table
from gramercy.reports.reader_notes import (
    best_attacker_accuracy,
    matrix_description,
    median_largest_noise,
    protection_note,
    reader_notes,
    spectrum_of,
)
from gramercy.reports.rendering import links_from, manifest_parameters, navigation, render
from gramercy.reports.steps import StepNoise, changed_rows


class ReportedRelease:
    """A release and its estimates, with what several sections of its page show."""

    def __init__(self, release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> None:
        self.release, self.estimates, self.facts = release, estimates, release.manifest
        self.own, self.correlations = own_columns(release), correlations(release)
        self.pairs = len(self.facts.names) * (len(self.facts.names) - 1) // 2
        self.spectrum, self.marginals = spectrum_of(release), marginal_table(release)


Section = Callable[[ReportedRelease], dict[str, Any] | None]


def release_page(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> str:
    """The page of a release and of estimates from it: HTML, a function of the bundles alone."""
    reported = ReportedRelease(release, estimates)
    found = {name: section(reported) for name, section in SECTIONS.items()}
    shown = {name: facts for name, facts in found.items() if facts is not None}
    return render(
        "release.html",
        **_page_facts(release),
        notes=reader_notes(release, reported.spectrum),
        stem=stems(reported.facts)[0],
        repair=release.repair,
        noise_sd=release.evidence.typical_noise,
        first_order=reported.facts.noise.family == "noisy-rows",
        unequal=_errors_differ(release),
        own=reported.own,
        corrected=reported.correlations.corrected,
        pairs=reported.pairs,
        estimates=estimates,
        sections=shown,
        **{key: value for facts in shown.values() for key, value in facts.items()},
    )


def marginals_page(release: ReleaseBundle) -> str:
    """The page of a release of kind ``marginals``, which has no matrix and no estimates."""
    return render(
        "marginals.html",
        **_page_facts(release),
        notes=[protection_note(release.manifest.guarantee)],
        marginals=marginal_table(release),
        estimates=(),
    )


def _page_facts(release: ReleaseBundle) -> dict[str, Any]:
    """What the page of a release of any kind shows."""
    facts = release.manifest
    return {
        # A report is at <dataset>/<release>/reports/<id>/report.html.
        "navigation": navigation(
            links_from(facts.dataset.id, facts.release, "reports", "id"),
            "Report",
            (facts.dataset.id, facts.dataset.title),
            (facts.release, facts.dataset.version),
        ),
        "facts": facts,
        "sha256": release.sha256,
        "accuracy": best_attacker_accuracy(facts.guarantee),
        "attack": facts.neighbours.attack(facts.privacy_unit),
        "attacker": figures.attacker(facts.guarantee),
        "parameters": manifest_parameters(facts),
    }


def _charts(reported: ReportedRelease) -> dict[str, Markup]:
    """The histogram of every column, if there are some."""
    return (
        {each.column: each.bars for each in reported.marginals.lines} if reported.marginals else {}
    )


def _step(reported: ReportedRelease) -> dict[str, Any] | None:
    """Which rows a step of a series adds up, and what rows do that change later."""
    facts = reported.facts
    step = facts.cumulative
    if step is None:
        return None
    link = links_from(facts.dataset.id, facts.release, "reports", "id")
    return {
        "step": step,
        "noise": StepNoise.of(step),
        "earlier": [
            (label, link(f"{facts.dataset.id}/{release}/{INDEX}"))
            for label, release in facts.releases_of_steps.items()
            if release != facts.release
        ],
        "changed": [*changed_rows(step.steps, step.every)],
        "changed_rows": figures.changed_rows(step.steps, step.every),
    }


def _matrix(reported: ReportedRelease) -> dict[str, Any]:
    facts, released = reported.facts, reported.correlations
    labels = column_labels(reported.release, released)
    hidden = released.hidden[np.triu_indices(len(labels), 1)]
    return {
        "quantity": facts.publication.quantity,
        "matrix_description": matrix_description(facts),
        "heat": heat_map(released.matrix, released.hidden, labels),
        "clustered": len(labels) >= FEWEST,
        "about_means": released.centred,
        "hidden": float(hidden.mean()) if hidden.size else 0.0,
    }


def _directions(reported: ReportedRelease) -> dict[str, Any] | None:
    """What a pilot matrix showed, with a figure if the released matrix is in its metric."""
    scaling, found = reported.facts.scaling, directions(reported.release)
    if scaling is None or not reported.facts.states_metric:
        return None
    return {
        "share_of_pilot": scaling.share_of_pilot,
        "directions": found,
        "noise_by_direction": None if found is None else figures.noise_by_direction(found),
    }


def _signal(reported: ReportedRelease) -> dict[str, Any]:
    eigenvalues = reported.spectrum
    return {
        "eigenvalues": eigenvalues,
        "negative": int((eigenvalues.released < 0).sum()),
        "spectrum": figures.eigenvalues(eigenvalues, reported.release.repair),
    }


def _entries(reported: ReportedRelease) -> dict[str, Any]:
    family = reported.facts.noise.family
    return {
        "median_largest_noise": median_largest_noise(reported.pairs, family),
        "effective_rows": effective_rows(reported.release),
        "sampling_law": sampling_law(reported.release),
        "entries": largest_entries(reported.release, reported.correlations),
    }


def _dependences(reported: ReportedRelease) -> dict[str, Any] | None:
    rows = [reported.release.rows_of(each.group) for each in reported.estimates]
    summaries = [
        EstimateSummary.of(each, meaningless_pairs(of_group))
        for each, of_group in zip(reported.estimates, rows, strict=True)
        if part_of(each) not in parts
    ]
    summaries.sort(key=lambda each: not each.sparse)
    if not summaries:
        return None
    return {"summaries": [with_figure(each) for each in summaries], "draws": DRAWS}


def _errors_differ(release: ReleaseBundle) -> bool:
    """Whether the noise on the entries of the diagonal has different deviations."""
    return release.manifest.noise.family == "noisy-rows" or release.manifest.is_whitened


def _preprocessing(reported: ReportedRelease) -> dict[str, Any]:
    """Columns of the table with their entries on the diagonal of the matrix."""
    release, facts = reported.release, reported.facts
    entries = [significant(x, 3) for x in np.diag(release.unbiased)]
    if _errors_differ(release):
        deviations = [significant(x, 2) for x in np.diag(release.deviations)]
        entries = [f"{x} ± {sd}" for x, sd in zip(entries, deviations, strict=True)]
    diagonal = iter(entries[int(facts.intercept) :])
    columns = []
    for column in facts.columns:
        constants = column.model_dump()
        of_column = [next(diagonal) for _ in constants.get("levels", [None])]
        columns.append(constants | {"diagonal": ", ".join(of_column)})
    return {"columns": columns}


# The sections of the page in their order. Each fills the template of its name in
# `templates/release`, or is left out if it has no facts.
SECTIONS: Mapping[str, Section] = {
    "step": _step,
    "columns": lambda reported: {"charts": _charts(reported)} if reported.own else None,
    "row_groups": lambda reported: (
        {"row_groups": groups, "most_pictures": MOST_PICTURES}
        if (groups := row_groups(reported.release))
        else None
    ),
    "marginals": lambda reported: {"marginals": reported.marginals} if reported.marginals else None,
    "matrix": _matrix,
    "directions": _directions,
    "signal": _signal,
    "entries": _entries,
    "classes": lambda reported: (
        {"groups": groups}
        if (groups := level_means(reported.release)) and (not reported.own or len(groups) > 1)
        else None
    ),
    "dependences": _dependences,
    "analyses": lambda reported: (
        {"analyses": found} if (found := analyses(reported.release, reported.estimates)) else None
    ),
    "preprocessing": _preprocessing,
    "usage": lambda reported: {"rows_file": reported.facts.publication.rows_file},
}
