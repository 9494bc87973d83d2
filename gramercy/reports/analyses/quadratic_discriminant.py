"""The part of a report about quadratic discriminant analysis: the classes and their means."""

from __future__ import annotations

from markupsafe import Markup

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.reports.rendering import render

_MOST_COLUMNS = 40  # of the table of means; the files have all


def part(release: ReleaseBundle, estimate: EstimateBundle) -> Markup:
    """The part about one estimate of kind ``quadratic-discriminant``."""
    facts, tables = estimate.manifest, estimate.tables
    features = list(dict.fromkeys(tables["means"]["feature"]))
    means = {
        name: list(zip(own["mean"], own["sd"], strict=True))[:_MOST_COLUMNS]
        for name, own in tables["means"].groupby("class", sort=False)
    }
    by = release.manifest.by
    return Markup(
        render(
            "analyses/quadratic_discriminant.html",
            estimate=facts.estimate,
            by="" if by is None else by.name,
            precision=str(facts.estimator["precision"]),
            prior=str(facts.estimator["prior"]),
            tuning=facts.tuning,
            classes=tables["classes"].to_dict("records"),
            means=means,
            features=features[:_MOST_COLUMNS],
            number=len(features),
        )
    )
