"""The public report of a release of histograms: one self-contained page, as `page` makes them."""

from __future__ import annotations

from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.reports import figures
from gramercy.reports.explanations import (
    attack_scenario,
    best_attacker_accuracy,
    protection_note,
)
from gramercy.reports.marginal_tables import marginal_table
from gramercy.reports.navigation import report_navigation
from gramercy.reports.rendering import manifest_parameters, render


def marginals_page(release: ReleaseBundle) -> str:
    """The page of a release of kind ``marginals``, which has no matrix and no estimates."""
    facts = release.manifest
    return render(
        "marginals.html",
        navigation=report_navigation(facts),
        facts=facts,
        sha256=release.sha256,
        notes=[protection_note(facts.guarantee)],
        accuracy=best_attacker_accuracy(facts.guarantee),
        attack=attack_scenario(facts.neighbours, facts.privacy_unit),
        attacker=figures.attacker(facts.guarantee),
        marginals=marginal_table(release),
        estimates=(),
        parameters=manifest_parameters(facts),
    )
