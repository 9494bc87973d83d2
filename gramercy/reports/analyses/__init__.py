"""The parts of a report about analyses: one module for each kind of estimate, and a line here.

Each has a template of the same name in `templates/analyses`. Graphs and precision matrices are
summarised by `reports.estimate_summary`.
"""

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from gramercy.archive.bundles.estimate_bundle import EstimateBundle
from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.reports.analyses import (
    components,
    cross_tables,
    pooled,
    quadratic_discriminant,
    regression,
    summary_table,
    synthetic,
)
from gramercy.schemas.manifest import EstimateKind

Part = Callable[[ReleaseBundle, EstimateBundle], Markup]

parts: Mapping[EstimateKind, Part] = {
    "quadratic-discriminant": quadratic_discriminant.part,
    "regression": regression.part,
    "components": components.part,
    "cross-tables": cross_tables.part,
    "summary": summary_table.part,
    "synthetic": synthetic.part,
    "pooled": pooled.part,
}


def analyses(release: ReleaseBundle, estimates: Sequence[EstimateBundle]) -> list[Markup]:
    """The part of every analysis among the estimates, in their order."""
    found = ((parts.get(each.manifest.kind), each) for each in estimates)
    return [part(release.rows_of(each.group), each) for part, each in found if part is not None]
