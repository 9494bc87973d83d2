"""The DP card: the public facts of a release and its guarantee, in the terms of the field.

Fields follow the tiers of the OpenDP Deployments Registry and the questions of NIST SP 800-226.
CARD.md shows them to readers of the folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gramercy.archive.bundles.number_files import MARGINALS
from gramercy.archive.bundles.package import markdown_text
from gramercy.common.notation import epsilon_delta, significant
from gramercy.schemas.facts import CalibrationFacts, ColumnFacts, GuaranteeFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.publications import Publication, publications


def guarantee_sentence(
    spec: ReleaseSpec, publication: Publication, guarantee: GuaranteeFacts
) -> str:
    """The guarantee in one sentence."""
    failure = f", except with probability {guarantee.delta0:.2g}" if guarantee.delta0 else ""
    level = f"{guarantee.mu:.4g}-Gaussian differential privacy{failure}"
    if guarantee.pure_epsilon is not None:
        level = f"pure {guarantee.pure_epsilon:.4g}-differential privacy, which implies {level}"
    else:
        # No single change may be the worst one for histograms and matrix at once.
        bounded = failure or publication.bounds_guarantee or spec.scaling is not None
        level = (
            f"{'at most' if bounded else 'exactly'} {level}, and (ε, δ)-differential privacy with "
        )
        level += epsilon_delta(guarantee.epsilon, guarantee.delta)
    seen = "this release"
    if spec.cumulative is not None:
        seen = f"all {spec.cumulative.steps} releases of this series"
    return (
        f"Anyone who sees {seen}, regardless of their other knowledge, learns almost the same "
        f"as if any one {spec.privacy_unit} had been {spec.neighbours.change}: {level}."
    )


def dp_card(
    spec: ReleaseSpec,
    publication: Publication,
    calibration: CalibrationFacts,
    guarantee: GuaranteeFacts,
    noise: NoiseLaw,
) -> dict[str, Any]:
    """The card as data."""
    budget = spec.budget
    scope = "lifetime budget"
    if budget.per != "lifetime":
        scope = f"budget for each {budget.per} of the data"
    levels = sum(isinstance(column, LevelsFacts) for column in spec.columns)
    domain = f"tables of {len(spec.columns) - levels} real columns with public bounds"
    categorical = "one column" if levels == 1 else f"{levels} columns"
    return {
        "curator": spec.dataset.curator,
        "intended_use": publication.intended_use,
        "data_domain": domain + (f" and {categorical} of public levels" if levels else ""),
        "flavour": "Gaussian differential privacy"
        + (", and pure differential privacy" if guarantee.pure_epsilon is not None else ""),
        "unit": f"one {spec.privacy_unit}",
        "neighbours": spec.neighbours.definition(spec.privacy_unit),
        **_order(publication),
        "trust_model": _TRUST["local" if spec.mechanism["name"] == "local" else "central"],
        "loss": guarantee.model_dump(exclude={"profile"}),
        "statement": guarantee_sentence(spec, publication, guarantee),
        "pre_processing": _rows(spec) if publication.has_matrix else _counted(spec),
        "mechanism": (
            f"{spec.mechanism['name']}: {_noise(spec, publication, noise)}, "
            f"{calibration.arithmetic} arithmetic"
            + (" on integers" if calibration.arithmetic == "exact" else "")
        ),
        "folds": _folds(spec),
        **_source(spec),
        **_period(spec),
        **_series(spec),
        **_groups(spec),
        "accounting": (
            f"Gaussian-DP filter or basic composition against a {scope} of "
            f"{epsilon_delta(budget.epsilon, budget.delta)}, of which "
            f"δ = {significant(budget.failure_share, 3)} is set aside for mechanisms that may fail"
        ),
        "post_processing": _post_processing(spec, publication, noise),
        "implementation": "Gramercy",
    }


def _rows(spec: ReleaseSpec) -> str:
    """How rows become those that the matrix averages over."""
    levels = any(isinstance(column, LevelsFacts) for column in spec.columns)
    indicators = ", each level becomes a column of zeros and ones" if levels else ""
    ones = ", a column of ones is put first" if spec.intercept else ""
    return (
        f"row by row, with {_constants(spec)}: {_codes(spec)}{_derived(spec)}missing cells take "
        f"the centre, cells "
        f"out of bounds are clamped, columns are centred and scaled{indicators}{ones}, and "
        f"{_normalised(spec)}"
        f"{_persons(spec)}{_further(spec)}"
    )


def _normalised(spec: ReleaseSpec) -> str:
    """How the length of a row is bounded."""
    if spec.metric_radius is None or spec.radius is None:
        return f"each row is {spec.normalisation.stated(spec.largest_norm)}"
    return (
        f"each row z becomes A z, with the published metric A, is clipped to l2 norm "
        f"{spec.metric_radius:g}, and is divided by it; the matrix of these rows is mapped "
        f"back to scaled columns and divided by {spec.radius**2:.6g} (multiply the matrix by it "
        "to return to centred and scaled columns)"
    )


_FURTHER = {"lost": "lost moments", "missing": "missing cells"}


def _further(spec: ReleaseSpec) -> str:
    """What becomes of rows in the further matrices, if there are any."""
    return "".join(
        f"; of each row, the matrix of {_FURTHER[name]} has {rows.stated(spec.largest_norm)}"
        for name, rows in spec.further_rows.items()
    )


def _codes(spec: ReleaseSpec) -> str:
    """Which numbers count as missing cells."""
    return "the numbers in missing_codes count as missing, " if spec.missing_codes else ""


def _derived(spec: ReleaseSpec) -> str:
    """Which columns are computed from others."""
    derived = [x.derived for x in spec.columns if isinstance(x, ColumnFacts) and x.derived]
    if not derived:
        return ""
    which = "1 column is" if len(derived) == 1 else f"{len(derived)} columns are"
    ranks = sum(each.function != each.declared.function for each in derived)
    scores = f"({ranks} of them as normal scores by its noisy histogram) " if ranks else ""
    return f"{which} computed from cells of the same row, clamped to public bounds, {scores}"


def _counted(spec: ReleaseSpec) -> str:
    """How rows become counts of histograms."""
    counts = "every row counts once"
    if spec.privacy_unit == "person":
        counts = "every person counts once, by one of their rows that is chosen at random,"
    return (
        f"{_codes(spec)}{_derived(spec)}"
        f"{counts} in the histogram of each column, in one bin of values, of a "
        "level, or of missing cells; and once in the histogram of the lengths of rows that are "
        "centred and scaled by constants computed from the other histograms"
    )


def _constants(spec: ReleaseSpec) -> str:
    """Where the constants come from."""
    if spec.scaling is None:
        return "public constants"
    if spec.scaling.kind == "private":
        return "constants computed from noisy histograms, which are published and charged"
    return f"constants computed from the noisy histograms of release {spec.scaling.release}"


def _noise(spec: ReleaseSpec, publication: Publication, noise: NoiseLaw) -> str:
    histograms = "histograms of every column and" if spec.estimates_constants else "a histogram"
    counts = f"Gaussian noise on the counts of {histograms} of row lengths"
    if not publication.has_matrix:
        return counts
    if spec.scaling is not None and spec.scaling.pilot:
        counts = (
            f"{counts}; then {NOISE['gaussian-isotropic']} on a pilot matrix, and Gaussian noise "
            "on the counts of a histogram of row lengths in its metric"
        )
    elif spec.scaling is not None and spec.scaling.turned:
        counts = (
            f"{counts}, and of a histogram of row lengths in the metric of release "
            f"{spec.scaling.release}"
        )
    on_matrix = f"{NOISE[noise.family]} on {publication.noise_on}"
    if spec.is_whitened:
        of_release = "" if spec.scaling is None else f"the metric of release {spec.scaling.release}"
        on_matrix = f"{on_matrix} in {'that metric' if spec.has_metric else of_release}"
    for name in spec.further_rows:
        further = f"{NOISE['gaussian-isotropic']} on the matrix of {_FURTHER[name]}"
        on_matrix = f"{on_matrix}, and {further}"
    return f"{counts}; then {on_matrix}" if spec.has_histograms else on_matrix


def _post_processing(spec: ReleaseSpec, publication: Publication, noise: NoiseLaw) -> str:
    if not publication.has_matrix:
        return "centres, scales and a clipping radius"
    constants = "" if spec.scaling is None else "centres, scales and the clipping radius; "
    if spec.has_metric:
        constants += "the metric of the pilot matrix, and whether it is used; "
    if spec.cumulative is not None:
        constants += "the sum of all rows so far, decoded from what every step published; "
    if spec.is_whitened:
        constants += "the matrix in scaled columns; "
    projection = "projection onto the positive semidefinite matrices within the public trace"
    shrinkage = "; rotation-invariant shrinkage of the eigenvalues (the denoised matrix)"
    return constants + projection + (shrinkage if noise.has_noise else "")


def _persons(spec: ReleaseSpec) -> str:
    if spec.privacy_unit != "person":
        return ""
    return (
        "; then all rows of a person are scaled by a common factor, so that the sum of their "
        "squared norms is at most 1"
    )


def _folds(spec: ReleaseSpec) -> str:
    if spec.folds == 1:
        return "none"
    return (
        f"{spec.folds} disjoint parts of the rows, each published with independent noise; every "
        "row is assigned to a part at random, independently of all other rows, so that a change of "
        "one row changes one part, and all parts together have the guarantee of one (parallel "
        "composition)"
    )


def _source(spec: ReleaseSpec) -> dict[str, str]:
    """What was read, if the table is in a database."""
    selection = spec.selection
    if selection is None:
        return {}
    read = f"the {selection.kind} '{selection.relation}'"
    if selection.query is not None:
        read = f"the query: {selection.query}"
    condition = "" if selection.where is None else f", where {selection.where}"
    words = (selection.assertion or "").rstrip(".")
    asserted = f". The curator asserts: {words}" if words else ""
    selects = selection.where is not None or selection.kind != "table"
    public = ""
    if selects and spec.neighbours.count_is_public and spec.privacy_unit == "row":
        public = (
            ". A row is replaced within this selection: whether a row is in it is public and not "
            "protected"
        )
    text = f"the rows of {read}{condition}{asserted}{public}"
    return {"source": " ".join(text.split())}  # conditions may have several lines


def _period(spec: ReleaseSpec) -> dict[str, str]:
    """Which rows belong to the release, if budgets are per period."""
    if spec.period is None:
        return {}
    files = "the files of this period; no file belongs to two periods"
    if spec.period.column is not None:
        files = (
            f"every row whose '{spec.period.column}' is in this period, in the time zone "
            f"{spec.period.timezone}; rows without a readable date are in no period"
        )
    public = ""
    if spec.neighbours.count_is_public:
        public = (
            ". A row is replaced within its period: the number of rows of each period, and whether "
            "a row is in it, are public and not protected"
        )
    return {
        "period": f"{spec.period.label}: {files}. Releases of different periods compose in "
        f"parallel, because a row belongs to one period at most, which never changes{public}"
    }


def _series(spec: ReleaseSpec) -> dict[str, str]:
    """Which rows a step of a cumulative series has, and what its guarantee is of."""
    facts = spec.cumulative
    if facts is None:
        return {}
    again = [
        f"step {k} was drawn {times} times" for k, times in enumerate(facts.draws, 1) if times > 1
    ]
    redrawn = f"; {' and '.join(again)}, and the guarantee counts every draw" if again else ""
    public = ""
    if spec.neighbours.count_is_public:
        public = (
            "; the number of rows of each step, and so the step of a row, are public and not "
            "protected"
        )
    return {
        "series": (
            f"step {facts.step} of {facts.steps}, with all rows so far, from "
            f"{facts.first_day} to {facts.last_day}. Every step publishes a weighted "
            "sum of all steps so far with fresh noise, from which sums are decoded. The stated "
            f"guarantee is that of all {facts.steps} steps together, and is charged once, with "
            f"the first one{redrawn}. A row belongs to one step, by its date, which never changes"
            f"{public}"
        )
    }


def _groups(spec: ReleaseSpec) -> dict[str, str]:
    """How rows are grouped, if they are."""
    if spec.by is None:
        return {}
    moved = " and a replaced row at most two" if spec.neighbours.changed_units == 2 else ""
    counted = ""
    if spec.privacy_unit == "person":
        counted = (
            "; the rows of a person may be in several groups, and the person counts in one of "
            "them, by one of their rows that is chosen at random"
        )
    return {
        "groups": (
            f"by the levels of '{spec.by.name}', and one group of all other rows, each published "
            f"with independent noise; an added or removed row changes one matrix{moved}, and all "
            f"matrices together have the stated guarantee; the number of rows in a group is "
            f"private, and published with noise{counted}"
        )
    }


def _order(publication: Publication) -> dict[str, str]:
    """What the order of published rows reveals."""
    if not publication.rows_file:
        return {}
    return {
        "order": "published rows are in the order of the table: the file and the position of a "
        "row are public and not protected"
    }


_TRUST = {
    "central": "central: the curator sees the raw rows, the public sees only the release",
    "local": "local: every row's report is noisy before it leaves its source",
}
NOISE = {
    "gaussian-isotropic": "rotation-invariant Gaussian noise",
    "gaussian-iid": "independent Gaussian noise of one scale",
    "laplace": "independent Laplace noise of one scale",
    "k-norm": "Frobenius K-norm noise (a uniform direction, a Gamma length)",
    "matrix-laplace": "matrix Laplace noise (the difference of two Wishart matrices)",
    "wishart": "Wishart noise",
    "noisy-rows": "independent Gaussian noise",
}


def card_page(manifest: ReleaseManifest, files: list[str]) -> str:
    """The text of CARD.md, for readers of the folder."""
    lines = [
        f"# {markdown_text(manifest.dataset.title)}, version {manifest.dataset.version}",
        "",
        manifest.card["statement"],
        "",
        f"Release `{manifest.dataset.id}/{manifest.release}`, {manifest.published}. "
        f"Curator: {markdown_text(manifest.dataset.curator)}.",
        "",
        "## Contents",
        "",
        content_summary(manifest),
        "",
        *(f"- `{name}`: {file_description(name)}" for name in files),
        "- `SHA256SUMS`: check with `sha256sum -c SHA256SUMS`, or `gramercy verify`.",
        "- `SHA256SUMS.sig`: the curator's Ed25519 signature of it.",
        "",
        "## Noise",
        "",
        noise_description(manifest),
        "",
        "## DP card",
        "",
        *(
            f"- **{key.replace('_', ' ')}**: {_plain(value)}"
            for key, value in manifest.card.items()
        ),
        "",
    ]
    return "\n".join(lines)


def content_summary(manifest: ReleaseManifest) -> str:
    """What a release contains, in a few sentences."""
    rows = f"{manifest.rows.value:.0f} rows"
    if manifest.rows.status != "public":
        rows += f" estimated with standard deviation {manifest.rows.sd:.0f}"
    content = manifest.publication.contents.format(
        rows=rows,
        shape=f"{len(manifest.names)} columns, {rows}",
        repaired="also projected" + (" and denoised" if manifest.noise.has_noise else ""),
    )
    if not manifest.publication.is_moment:
        return content
    return (
        f"{content} 'Second moment' means the average of x xᵀ over rows x that were centred and "
        f"scaled by public constants and normalised.{_origin_of_constants(manifest)}"
    )


def _origin_of_constants(manifest: ReleaseManifest) -> str:
    scaling = manifest.scaling
    if scaling is None:
        return ""
    if scaling.kind == "private":
        return f" The constants were computed from the noisy histograms in `{MARGINALS}`."
    return f" The constants were computed from the noisy histograms of release {scaling.release}."


def file_description(name: str) -> str:
    """What a file of a release contains."""
    stem = Path(name).stem
    form = stem.rpartition("_")[2]
    if form.startswith("fold"):
        return f"the second moment of part {form[4:]} of the rows, as released: see 'folds' below"
    return _DESCRIPTIONS[form if form in {"projected", "denoised"} else stem]


_DESCRIPTIONS = {
    "second_moment": "the matrix as released, noise included; may be indefinite",
    "precision": "the precision matrix as released, noise included; may be indefinite",
    "projected": "the nearest positive semidefinite matrix within the public trace",
    "denoised": "the matrix with eigenvalues shrunk according to the noise law: positive "
    "semidefinite, within the public trace",
    "lost_moments": "the second moment of what clipping takes away from the rows, as released",
    "missing_cells": "the second moment of rows with the indicators of their missing cells, as "
    "released",
    "pilot": "the noisy sum over rows, clipped and divided by the radius, from which the metric "
    "follows",
    "metric": "the metric A: rows are clipped, and noise is spherical, in the units of A z, where "
    "z is a scaled row",
    "whitened": "the second moment of the rows A z as released, noise included",
    "groups_missing": "the same for every group of rows; one line for each entry of the upper "
    "triangle",
    "encoded": "what this step of the series published, from which sums over steps are decoded as "
    "`datapackage.json` says: whole numbers; one line for each entry of the upper triangle",
    "marginals": "noisy histograms of every column, in stages, where constants are estimated, and "
    "of the lengths of scaled rows: the last stage of a column is its marginal distribution",
    "groups": "the second moment of every group of rows, as released and denoised, that of what "
    "clipping takes away, and those of the folds of every group if there are any; one line for "
    "each entry of the upper triangle",
    **{each.name: each.row_contents for each in publications.values() if each.rows_file},
    "CARD": "this page",
}


def noise_description(manifest: ReleaseManifest) -> str:
    """The noise of a release and its size."""
    law = manifest.noise
    if not manifest.publication.has_matrix:
        return _count_noise(manifest)
    noise = f"{NOISE[law.family]} on {manifest.publication.noise_on}."
    noise = noise[0].upper() + noise[1:]
    about = "about " if law.family == "noisy-rows" else ""
    mean = f"mean {law.mean:.6g} on the diagonal, " if law.mean else ""
    place = "whitened matrix" if manifest.is_whitened else manifest.publication.matrix
    return (
        f"{noise} In the {place}: {mean}standard deviation "
        f"{about}{law.sd_diagonal:.6g} on the diagonal and "
        f"{about}{law.sd_off_diagonal:.6g} elsewhere."
        + _mapped_noise(manifest)
        + _further_noise(manifest)
        + _divisor(manifest)
        + _count_noise(manifest)
    )


def _mapped_noise(manifest: ReleaseManifest) -> str:
    """The noise of a matrix that was drawn in a metric, in scaled columns."""
    if manifest.metric_radius is None:
        return ""
    radii = f"{manifest.metric_radius:g} / {manifest.radius:g}"
    return (
        f" With E this noise, the second moment has the noise G E Gᵀ, where G is {radii} times the "
        "inverse of the metric; folds and groups likewise."
    )


def _further_noise(manifest: ReleaseManifest) -> str:
    """The noise of the further matrices, if there are any."""
    return "".join(
        f" In the matrix of {_FURTHER[name]}: {NOISE[facts.noise.family]}, standard deviation "
        f"{facts.noise.sd_diagonal:.6g} on the diagonal and "
        f"{facts.noise.sd_off_diagonal:.6g} elsewhere."
        for name, facts in manifest.further_facts.items()
    )


def _count_noise(manifest: ReleaseManifest) -> str:
    if not manifest.has_histograms:
        return ""
    start = " " if manifest.publication.has_matrix else ""
    noise = "have Gaussian noise, whose standard deviation it states."
    return f"{start}The counts in `{MARGINALS}` {noise}"


def _divisor(manifest: ReleaseManifest) -> str:
    """The additional error from a noisy divisor."""
    if manifest.rows.status == "public":
        return ""
    source = (
        "a noisy count" if manifest.publishes_noisy_count else "the noisy trace of the same matrix"
    )
    return (
        f" The matrix was divided by {source}, so all entries and these standard deviations have "
        f"an additional common relative error of about "
        f"{manifest.rows.sd / manifest.rows.value:.2g}."
    )


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v:.6g}" for k, v in value.items() if v is not None)
    return markdown_text(str(value))
