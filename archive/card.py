"""The DP card: what a release guarantees, for people, in the words the field has agreed on.

Fields follow the tiers of the OpenDP Deployments Registry and the questions of NIST SP 800-226.
"""

from __future__ import annotations

from typing import Any

from schemas.manifest import (
    Asked,
    CalibrationFacts,
    GuaranteeFacts,
    LevelsFacts,
    ReleaseManifest,
    RowsFacts,
)
from schemas.request import Unit

_NEIGHBOURS = {
    "replace-one": "one row replaced by any other row; the number of rows is public",
    "add-remove": "one row present or absent; the number of rows is private",
}


def in_one_sentence(guarantee: GuaranteeFacts, neighbours: str) -> str:
    """The guarantee, so that everyone can repeat it."""
    change = "replaced" if neighbours == "replace-one" else "added or removed"
    return (
        f"Whoever sees this release, whatever else they know, learns almost the same as if any one "
        f"row had been {change}: exactly {guarantee.mu:.4g}-Gaussian differential privacy, which "
        f"is epsilon = {guarantee.epsilon:.4g} at delta = {guarantee.delta:.3g}."
    )


def card(asked: Asked, calibration: CalibrationFacts, guarantee: GuaranteeFacts) -> dict[str, Any]:
    """The card as data."""
    how = (
        "divided by its own l2 norm"
        if isinstance(asked.normalisation, Unit)
        else _clipped(asked.normalisation.radius)
    )
    return {
        "curator": asked.dataset.curator,
        "intended_use": "estimation of second moments, precision matrices and graphs",
        "data_domain": _domain(asked),
        "flavour": "Gaussian differential privacy",
        "unit": "one row",
        "neighbours": _NEIGHBOURS[asked.neighbours],
        "trust_model": "central: the curator sees the raw rows, the public sees the release alone",
        "loss": guarantee.model_dump(),
        "statement": in_one_sentence(guarantee, asked.neighbours),
        "pre_processing": (
            "row by row, with public constants: missing cells take the centre, cells out of bounds "
            f"are clamped, columns are centred and scaled{_added(asked)}, and each row is {how}"
        ),
        "mechanism": (
            f"{asked.mechanism['name']}: independent Gaussian noise on the second-moment matrix, "
            f"{calibration.arithmetic} arithmetic on integers"
        ),
        "accounting": "Gaussian-DP filter or basic composition against a lifetime budget",
        "post_processing": "rotation-invariant shrinkage of the eigenvalues (the denoised matrix)",
        "implementation": "Gramercy",
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
        f"The noisy second moment of the normalised rows ({len(manifest.names)} columns, "
        f"{_rows(manifest.rows)}), and the same denoised. 'Second moment' means the average of "
        "x xᵀ over rows x that were centred and scaled by public constants and normalised.",
        "",
        *(f"- `{name}`: {_MEANING[name.split('.')[0]]}" for name in files),
        "- `SHA256SUMS`: check with `sha256sum -c SHA256SUMS`, or `gramercy verify`.",
        "",
        "## Noise",
        "",
        f"Independent, Gaussian, zero on average: standard deviation "
        f"{manifest.noise.sd_diagonal:.6g} on the diagonal and "
        f"{manifest.noise.sd_off_diagonal:.6g} elsewhere." + _divided(manifest),
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


_MEANING = {
    "second_moment": "the matrix as released, noise included; may be indefinite",
    "second_moment_denoised": "post-processed: positive semidefinite, trace at most 1",
    "CARD": "this page",
}


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
