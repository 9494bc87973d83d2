"""Scaling: where the centres and scales of columns, and the clipping radius, come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gramercy.schemas.form_choices import Select
from gramercy.schemas.model import Digest, Label, Model, NotNegative, Positive, Real, expand_kind

SHARE = Field(strict=True, gt=0, lt=1, allow_inf_nan=False)


class DeclaredScaling(Model):
    """``declared``: the constants of the contract, or the middle and half width of the bounds."""

    kind: Literal["declared"] = "declared"


class PrivateScaling(Model):
    """``private``: constants from noisy histograms, paid for from the same budget.

    Parameters
    ----------
    share
        Share of mu squared that is spent on constants; by default chosen from public facts.
    """

    kind: Literal["private"] = "private"
    share: Annotated[float, SHARE] | None = None


class ReleasedScaling(Model):
    """``{from: RELEASE}``: the constants of an earlier release of the same data set.

    Parameters
    ----------
    release
        Id of that release.
    """

    kind: Literal["release"] = "release"
    release: Label


AnyScaling = DeclaredScaling | PrivateScaling | ReleasedScaling


def _expand(value: Any) -> Any:
    if isinstance(value, Mapping) and "from" in value and "kind" not in value:
        return {"kind": "release", "release": value["from"]} | {
            key: each for key, each in value.items() if key != "from"
        }
    return expand_kind(value)


Scaling = Annotated[
    Annotated[AnyScaling, Field(discriminator="kind"), Select("kind")], BeforeValidator(_expand)
]


class ScalingFacts(Model):
    """How the constants of a release were chosen.

    Parameters
    ----------
    kind
        ``private``: from this release's own noisy histograms; ``release``: from those of another.
    bounds
        Declared bounds of every column of the table; null for levels, and without bounds.
    stages, lengths
        Shares of mu squared for the histograms of each stage, and for that of row lengths.
    present
        Published share of rows with a value, for every column of the table; 1 for levels. Null
        before the histograms are drawn.
    release, sha256
        The other release, with the digest of its SHA256SUMS.
    """

    kind: Literal["private", "release"]
    bounds: tuple[tuple[Real, Real] | None, ...]
    stages: tuple[Positive, ...] = ()
    lengths: NotNegative = 0.0
    present: tuple[NotNegative, ...] | None = None
    release: Label | None = None
    sha256: Digest | None = None
