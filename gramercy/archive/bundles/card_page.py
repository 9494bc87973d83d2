"""CARD.md: a release for readers of its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gramercy.archive.bundles.card import NOISE, PUBLISHED
from gramercy.archive.bundles.escaped_texts import markdown_text
from gramercy.archive.bundles.marginals_file import MARGINALS
from gramercy.schemas.facts import RowsFacts
from gramercy.schemas.manifest import ReleaseManifest


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
    shape = f"{len(manifest.names)} columns, {_rows(manifest.rows)}"
    if manifest.kind == "marginals":
        return (
            f"Noisy histograms of every column of the table ({_rows(manifest.rows)}), and of the "
            "lengths of its scaled rows. The constants of the columns were computed from them."
        )
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
    "marginals": "noisy histograms of every column, in stages, and of the lengths of scaled rows: "
    "the last stage of a column is its marginal distribution",
    "groups": "the second moment of every group of rows, as released and denoised, and of the "
    "folds of every group if there are any; one line for each entry of the upper triangle",
    "rows": "the rows as released, noise included, in the order of the table",
    "reports": "one report per row: the upper triangle of its x xᵀ, noise included",
    "CARD": "this page",
}


def noise_description(manifest: ReleaseManifest) -> str:
    """The noise of a release and its size."""
    law = manifest.noise
    if manifest.kind == "marginals":
        return _count_noise(manifest)
    noise = f"{NOISE[law.family]} on {PUBLISHED[manifest.kind]}."
    noise = noise[0].upper() + noise[1:]
    about = "about " if law.family == "noisy-rows" else ""
    mean = f"mean {law.mean:.6g} on the diagonal, " if law.mean else ""
    matrix = "matrix" if manifest.kind == "precision" else "second moment"
    return (
        f"{noise} In the {matrix}: {mean}standard deviation {about}{law.sd_diagonal:.6g} on the "
        f"diagonal and {about}{law.sd_off_diagonal:.6g} elsewhere."
        + _divisor(manifest)
        + _count_noise(manifest)
    )


def _count_noise(manifest: ReleaseManifest) -> str:
    if manifest.scaling is None or manifest.scaling.kind != "private":
        return ""
    start = "" if manifest.kind == "marginals" else " "
    noise = "have Gaussian noise, whose standard deviation it states."
    return f"{start}The counts in `{MARGINALS}` {noise}"


def _rows(rows: RowsFacts) -> str:
    if rows.status == "public":
        return f"{rows.value:.0f} rows"
    return f"{rows.value:.0f} rows estimated with standard deviation {rows.sd:.0f}"


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
