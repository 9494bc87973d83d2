"""The DP card: what a release guarantees, for people, in the words the field has agreed on.

Fields follow the tiers of the OpenDP Deployments Registry and the questions of NIST SP 800-226.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gramercy.schemas.facts import CalibrationFacts, GuaranteeFacts, LevelsFacts, RowsFacts
from gramercy.schemas.manifest import Asked, ReleaseKind, ReleaseManifest
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


def in_one_sentence(asked: Asked, kind: ReleaseKind, guarantee: GuaranteeFacts) -> str:
    """The guarantee, so that everyone can repeat it."""
    change = "replaced" if asked.neighbours == "replace-one" else "added or removed"
    beside = f" but for a probability of {guarantee.delta0:.2g}" if guarantee.delta0 else ""
    gaussian = f"{guarantee.mu:.4g}-Gaussian differential privacy{beside}"
    if guarantee.pure is not None:
        told = f"pure {guarantee.pure:.4g}-differential privacy, which is also {gaussian}"
    else:
        bound = beside or kind == "precision"  # of a precision matrix the change is only bounded
        told = f"{'at most' if bound else 'exactly'} {gaussian}, and epsilon = "
        told += f"{guarantee.epsilon:.4g} at delta = {guarantee.delta:.3g}"
    return (
        "Whoever sees this release, whatever else they know, learns almost the same as if any one "
        f"{asked.unit} had been {change}: {told}."
    )


def card(
    asked: Asked,
    kind: ReleaseKind,
    calibration: CalibrationFacts,
    guarantee: GuaranteeFacts,
    noise: NoiseLaw,
) -> dict[str, Any]:
    """The card as data."""
    return {
        "curator": asked.dataset.curator,
        "intended_use": "estimation of second moments, precision matrices and graphs",
        "data_domain": _domain(asked),
        "flavour": "Gaussian differential privacy"
        + (", and pure differential privacy" if guarantee.pure is not None else ""),
        "unit": f"one {asked.unit}",
        "neighbours": _NEIGHBOURS[asked.unit, asked.neighbours],
        **_order(kind),
        "trust_model": _TRUST["local" if asked.mechanism["name"] == "local" else "central"],
        "loss": guarantee.model_dump(exclude={"curve"}),
        "statement": in_one_sentence(asked, kind, guarantee),
        "pre_processing": (
            "row by row, with public constants: missing cells take the centre, cells out of bounds "
            f"are clamped, columns are centred and scaled{_added(asked)}, and each row is "
            f"{_normalised(asked)}{_together(asked)}"
        ),
        "mechanism": (
            f"{asked.mechanism['name']}: {_NOISE[noise.family]} on {_PUBLISHED[kind]}, "
            f"{calibration.arithmetic} arithmetic"
            + (" on integers" if calibration.arithmetic == "exact" else "")
        ),
        "folds": _folds(asked),
        "accounting": _accounting(asked),
        "post_processing": "projection onto the matrices that can be"
        + (
            "; rotation-invariant shrinkage of the eigenvalues (the denoised matrix)"
            if noise.shrinkable
            else ""
        ),
        "implementation": "Gramercy",
    }


def _together(asked: Asked) -> str:
    if asked.unit != "person":
        return ""
    return "; then all rows of a person are scaled together, so that their squares sum to 1 at most"


def _folds(asked: Asked) -> str:
    if asked.folds == 1:
        return "none"
    return (
        f"{asked.folds} disjoint parts of the rows, each published with noise of its own; every "
        "row is in one at random, whatever the other rows are, so that the change of one row "
        "changes one part, and their guarantee is that of one (parallel composition)"
    )


def _accounting(asked: Asked) -> str:
    rule = "Gaussian-DP filter or basic composition"
    budget = asked.budget
    if budget is None:
        return rule
    of = "lifetime budget" if budget.per == "lifetime" else "budget for each year of the data"
    return (
        f"{rule} against a {of} of epsilon {budget.epsilon:g} and delta {budget.delta:g}, of which "
        f"{budget.failures:g} is set aside for mechanisms that may fail"
    )


def _order(kind: ReleaseKind) -> dict[str, str]:
    """What the order of published rows shows."""
    if kind not in {"rows", "reports"}:
        return {}
    return {
        "order": "published rows are in the order of the table: in which file a row is, and at "
        "which place, is public and not protected"
    }


_TRUST = {
    "central": "central: the curator sees the raw rows, the public sees the release alone",
    "local": "local: every row's report is noisy before it leaves its source",
}
_NOISE = {
    "gaussian-isotropic": "Gaussian noise that knows no direction",
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
    "reports": "every row's own second moment",
    "precision": "a graphical lasso precision matrix",
}


def card_text(manifest: ReleaseManifest, files: list[str]) -> str:
    """The card as a page, for whoever opens the folder."""
    lines = [
        f"# {manifest.dataset.title}, version {manifest.dataset.version}",
        "",
        manifest.card["statement"],
        "",
        f"Release `{manifest.dataset.id}/{manifest.release}`, {manifest.published}. "
        f"Curator: {manifest.dataset.curator}.",
        "",
        "## What is here",
        "",
        contents(manifest),
        "",
        *(f"- `{name}`: {meaning(name)}" for name in files),
        "- `SHA256SUMS`: check with `sha256sum -c SHA256SUMS`, or `gramercy verify`.",
        "- `SHA256SUMS.sig`: the curator's Ed25519 signature of it.",
        "",
        "## Noise",
        "",
        noise_words(manifest),
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


def contents(manifest: ReleaseManifest) -> str:
    """What a release holds, in a few sentences."""
    shape = f"{len(manifest.names)} columns, {_rows(manifest.rows)}"
    if manifest.kind == "precision":
        return (
            f"A noisy precision matrix ({shape}): the graphical lasso solution for the second "
            "moment of the normalised rows, noise added to the solution itself."
        )
    first = f"The noisy second moment of the normalised rows ({shape}), and the same repaired."
    if manifest.kind == "rows":
        first = f"The normalised rows with noise on every cell ({shape}), and what follows from "
        first += "them without bias: their second moment, and the same repaired."
    if manifest.kind == "reports":
        first = f"One noisy report of every row ({shape}), their average, and the same repaired."
    return (
        f"{first} 'Second moment' means the average of x xᵀ over rows x that were centred and "
        "scaled by public constants and normalised."
    )


def meaning(name: str) -> str:
    """What a file of a release holds."""
    stem = Path(name).stem
    form = stem.rpartition("_")[2]
    if form.startswith("fold"):
        return f"of part {form[4:]} of the rows alone, as released: see 'folds' below"
    return _MEANING[form if form in {"projected", "denoised"} else stem]


_MEANING = {
    "second_moment": "the matrix as released, noise included; may be indefinite",
    "precision": "the precision matrix as released, noise included; may be indefinite",
    "projected": "the nearest positive semidefinite matrix within the public trace",
    "denoised": "post-processed as the noise law says is best: positive semidefinite, "
    "within the public trace",
    "rows": "the rows as released, noise included, in the order of the table",
    "reports": "one report a row: the upper triangle of its x xᵀ, noise included",
    "CARD": "this page",
}


def noise_words(manifest: ReleaseManifest) -> str:
    """Its noise, and how large it is."""
    law = manifest.noise
    told = f"{_NOISE[law.family]} on {_PUBLISHED[manifest.kind]}."
    told = told[0].upper() + told[1:]
    about = "about " if law.family == "noisy-rows" else ""
    mean = f"an average of {law.mean:.6g} on the diagonal, " if law.mean else ""
    matrix = "matrix" if manifest.kind == "precision" else "second moment"
    return (
        f"{told} In the {matrix}: {mean}standard deviation {about}{law.sd_diagonal:.6g} on the "
        f"diagonal and {about}{law.sd_off_diagonal:.6g} elsewhere." + _divided(manifest)
    )


def _normalised(asked: Asked) -> str:
    how = asked.normalisation
    if isinstance(how, Unit):
        return "divided by its own l2 norm"
    if isinstance(how, Clip):
        return _clipped(how.radius)
    if isinstance(how, Box):
        return f"divided by {asked.longest:.9g}, the longest that the bounds allow"
    return (
        "kept in whole numbers (nothing is scaled; published rows are in the table's own units, "
        "their second moment is about the centres)"
    )


def _rows(rows: RowsFacts) -> str:
    if rows.status == "public":
        return f"{rows.value:.0f} rows"
    return f"{rows.value:.0f} rows estimated with standard deviation {rows.sd:.0f}"


def _domain(asked: Asked) -> str:
    levels = sum(isinstance(column, LevelsFacts) for column in asked.columns)
    words = f"tables of {len(asked.columns) - levels} real columns with public bounds"
    more = "one column" if levels == 1 else f"{levels} columns"
    return words + (f" and {more} of public levels" if levels else "")


def _added(asked: Asked) -> str:
    """What stands in a row beside the scaled columns."""
    levels = any(isinstance(column, LevelsFacts) for column in asked.columns)
    words = ", each level becomes a column of zeros and ones" if levels else ""
    return words + (", a column of ones is put first" if asked.intercept else "")


def _divided(manifest: ReleaseManifest) -> str:
    """What a noisy divisor does to the noise law."""
    if manifest.rows.status == "public":
        return ""
    source = "a noisy count" if manifest.counted else "the noisy trace of the same matrix"
    return (
        f" The matrix was divided by {source}, so every entry, and this law with it, carries a "
        f"common relative error of about {manifest.rows.sd / manifest.rows.value:.2g} as well."
    )


def _clipped(radius: float) -> str:
    return (
        f"shortened to l2 norm {radius:g} where longer, then divided by {radius:g} (multiply the "
        f"matrix by {radius * radius:.6g} to return to centred and scaled columns)"
    )


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v:.6g}" for k, v in value.items() if v is not None)
    return str(value)
