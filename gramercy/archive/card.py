"""The DP card: the public facts of a release and its guarantee, in the terms of the field.

Fields follow the tiers of the OpenDP Deployments Registry and the questions of NIST SP 800-226.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gramercy.common.notation import epsilon_delta, significant
from gramercy.schemas.facts import CalibrationFacts, GuaranteeFacts, LevelsFacts, RowsFacts
from gramercy.schemas.manifest import ReleaseKind, ReleaseManifest, ReleaseSpec
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import Box, Clip, Unit

_NEIGHBOURS = {
    ("row", "replace-one"): "one row replaced by any other row; the number of rows is public",
    ("row", "add-remove"): "one row present or absent; the number of rows is private",
    ("person", "replace-one"): "all rows of one person replaced by any others; the number of "
    "persons is public",
    ("person", "add-remove"): "one person present or absent, with all their rows; the number of "
    "persons is private",
    ("cell", "replace-one"): "one cell replaced by any other, or missing; the number of rows is "
    "public",
}


def guarantee_sentence(spec: ReleaseSpec, kind: ReleaseKind, guarantee: GuaranteeFacts) -> str:
    """The guarantee in one sentence."""
    change = "replaced" if spec.neighbours == "replace-one" else "added or removed"
    failure = f", except with probability {guarantee.delta0:.2g}" if guarantee.delta0 else ""
    level = f"{guarantee.mu:.4g}-Gaussian differential privacy{failure}"
    if guarantee.pure_epsilon is not None:
        level = f"pure {guarantee.pure_epsilon:.4g}-differential privacy, which implies {level}"
    else:
        # The sensitivity of a precision matrix is not known exactly, only bounded.
        bounded = failure or kind == "precision"
        level = (
            f"{'at most' if bounded else 'exactly'} {level}, and (ε, δ)-differential privacy with "
        )
        level += epsilon_delta(guarantee.epsilon, guarantee.delta)
    return (
        "Anyone who sees this release, regardless of their other knowledge, learns almost the same "
        f"as if any one {spec.privacy_unit} had been {change}: {level}."
    )


def dp_card(
    spec: ReleaseSpec,
    kind: ReleaseKind,
    calibration: CalibrationFacts,
    guarantee: GuaranteeFacts,
    noise: NoiseLaw,
) -> dict[str, Any]:
    """The card as data."""
    return {
        "curator": spec.dataset.curator,
        "intended_use": "estimation of second moments, precision matrices and graphs",
        "data_domain": _domain(spec),
        "flavour": "Gaussian differential privacy"
        + (", and pure differential privacy" if guarantee.pure_epsilon is not None else ""),
        "unit": f"one {spec.privacy_unit}",
        "neighbours": _NEIGHBOURS[spec.privacy_unit, spec.neighbours],
        **_order(kind),
        "trust_model": _TRUST["local" if spec.mechanism["name"] == "local" else "central"],
        "loss": guarantee.model_dump(exclude={"profile"}),
        "statement": guarantee_sentence(spec, kind, guarantee),
        "pre_processing": (
            "row by row, with public constants: missing cells take the centre, cells out of bounds "
            f"are clamped, columns are centred and scaled{_added_columns(spec)}, and each row is "
            f"{_normalised(spec)}{_persons(spec)}"
        ),
        "mechanism": (
            f"{spec.mechanism['name']}: {_NOISE[noise.family]} on {_PUBLISHED[kind]}, "
            f"{calibration.arithmetic} arithmetic"
            + (" on integers" if calibration.arithmetic == "exact" else "")
        ),
        "folds": _folds(spec),
        "accounting": _accounting(spec),
        "post_processing": "projection onto the positive semidefinite matrices within the public "
        "trace"
        + (
            "; rotation-invariant shrinkage of the eigenvalues (the denoised matrix)"
            if noise.has_noise
            else ""
        ),
        "implementation": "Gramercy",
    }


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


def _accounting(spec: ReleaseSpec) -> str:
    rule = "Gaussian-DP filter or basic composition"
    budget = spec.budget
    if budget is None:
        return rule
    scope = "lifetime budget" if budget.per == "lifetime" else "budget for each year of the data"
    return (
        f"{rule} against a {scope} of {epsilon_delta(budget.epsilon, budget.delta)}, of which "
        f"δ = {significant(budget.failure_share, 3)} is set aside for mechanisms that may fail"
    )


def _order(kind: ReleaseKind) -> dict[str, str]:
    """What the order of published rows reveals."""
    if kind not in {"rows", "reports"}:
        return {}
    return {
        "order": "published rows are in the order of the table: the file and the position of a "
        "row are public and not protected"
    }


_TRUST = {
    "central": "central: the curator sees the raw rows, the public sees only the release",
    "local": "local: every row's report is noisy before it leaves its source",
}
_NOISE = {
    "gaussian-isotropic": "rotation-invariant Gaussian noise",
    "gaussian-iid": "independent Gaussian noise of one scale",
    "laplace": "independent Laplace noise of one scale",
    "k-norm": "Frobenius K-norm noise (a uniform direction, a Gamma length)",
    "matrix-laplace": "matrix Laplace noise (the difference of two Wishart matrices)",
    "wishart": "Wishart noise",
    "noisy-rows": "independent Gaussian noise",
}
_PUBLISHED = {
    "second-moment": "the second-moment matrix",
    "rows": "every cell of every row",
    "reports": "the second moment of each row",
    "precision": "a graphical lasso precision matrix",
}


def card_page(manifest: ReleaseManifest, files: list[str]) -> str:
    """The text of CARD.md, for readers of the folder."""
    lines = [
        f"# {manifest.dataset.title}, version {manifest.dataset.version}",
        "",
        manifest.card["statement"],
        "",
        f"Release `{manifest.dataset.id}/{manifest.release}`, {manifest.published}. "
        f"Curator: {manifest.dataset.curator}.",
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
    shape = f"{len(manifest.names)} columns, {_rows(manifest.rows)}"
    if manifest.kind == "precision":
        return (
            f"A noisy precision matrix ({shape}): the graphical lasso solution for the second "
            "moment of the normalised rows, with noise added to the solution."
        )
    repaired = "also projected and denoised" if manifest.noise.has_noise else "also projected"
    content = f"The noisy second moment of the normalised rows ({shape}), {repaired}."
    if manifest.kind == "rows":
        content = f"The normalised rows with noise on every cell ({shape}), and the unbiased "
        content += f"second moment that follows from them, {repaired}."
    if manifest.kind == "reports":
        content = f"One noisy report of every row ({shape}), and their average, {repaired}."
    return (
        f"{content} 'Second moment' means the average of x xᵀ over rows x that were centred and "
        "scaled by public constants and normalised."
    )


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
    "rows": "the rows as released, noise included, in the order of the table",
    "reports": "one report per row: the upper triangle of its x xᵀ, noise included",
    "CARD": "this page",
}


def noise_description(manifest: ReleaseManifest) -> str:
    """The noise of a release and its size."""
    law = manifest.noise
    noise = f"{_NOISE[law.family]} on {_PUBLISHED[manifest.kind]}."
    noise = noise[0].upper() + noise[1:]
    about = "about " if law.family == "noisy-rows" else ""
    mean = f"mean {law.mean:.6g} on the diagonal, " if law.mean else ""
    matrix = "matrix" if manifest.kind == "precision" else "second moment"
    return (
        f"{noise} In the {matrix}: {mean}standard deviation {about}{law.sd_diagonal:.6g} on the "
        f"diagonal and {about}{law.sd_off_diagonal:.6g} elsewhere." + _divisor(manifest)
    )


def _normalised(spec: ReleaseSpec) -> str:
    normalisation = spec.normalisation
    if isinstance(normalisation, Unit):
        return "divided by its own l2 norm"
    if isinstance(normalisation, Clip):
        return _clipped(normalisation.radius)
    if isinstance(normalisation, Box):
        return f"divided by {spec.largest_norm:.9g}, the largest l2 norm that the bounds allow"
    return (
        "kept as integers (nothing is scaled; published rows are in the units of the table, "
        "and their second moment is about the centres)"
    )


def _rows(rows: RowsFacts) -> str:
    if rows.status == "public":
        return f"{rows.value:.0f} rows"
    return f"{rows.value:.0f} rows estimated with standard deviation {rows.sd:.0f}"


def _domain(spec: ReleaseSpec) -> str:
    levels = sum(isinstance(column, LevelsFacts) for column in spec.columns)
    domain = f"tables of {len(spec.columns) - levels} real columns with public bounds"
    categorical = "one column" if levels == 1 else f"{levels} columns"
    return domain + (f" and {categorical} of public levels" if levels else "")


def _added_columns(spec: ReleaseSpec) -> str:
    """The columns of a row that are not scaled columns of the table."""
    levels = any(isinstance(column, LevelsFacts) for column in spec.columns)
    indicators = ", each level becomes a column of zeros and ones" if levels else ""
    return indicators + (", a column of ones is put first" if spec.intercept else "")


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


def _clipped(radius: float) -> str:
    return (
        f"clipped to l2 norm {radius:g}, then divided by {radius:g} (multiply the matrix by "
        f"{radius * radius:.6g} to return to centred and scaled columns)"
    )


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v:.6g}" for k, v in value.items() if v is not None)
    return str(value)
