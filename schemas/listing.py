"""The signed listing of an archive: what it contains, so that readers need not search it.

The root names the parts of every data set by their digests; a part lists some of its releases.
`gramercy.archive.listing.signed_listing` writes, signs and reads them.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from gramercy.schemas import families
from gramercy.schemas.facts import DatasetFacts, RowsFacts, step_in_words
from gramercy.schemas.ledger_history import Anchor, number_of
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.model import Digest, Label, Model, Slug
from gramercy.schemas.neighbours import Neighbours, ProtectedUnit
from gramercy.schemas.normalisation import AnyNormalisation
from gramercy.schemas.publications import Publication, ReleaseKind, publications

LISTING_FORMAT: Literal[1] = 1

Names = tuple[str, ...]
# Of the catalogue or of a data set: never a path that leads out of the archive.
PageName = Annotated[str, Field(pattern=r"^(?:[a-z0-9-]{1,63}/)?[a-z0-9-]{1,63}\.html$")]


class ListedMechanism(Model):
    """The mechanism of a release; its parameters are in the manifest."""

    name: str


class ListedGuarantee(Model):
    """The guarantee of a release; see `schemas.facts.GuaranteeFacts`."""

    mu: float
    delta0: float
    pure_epsilon: float | None
    epsilon: float
    delta: float


class Withdrawal(Model):
    """A notice of withdrawal: the digest of its SHA256SUMS, and the reason that it states."""

    sha256: Digest
    reason: Annotated[str, Field(max_length=500)]


class ListedStep(Model):
    """The step of a cumulative series that a release publishes, and the days of its rows."""

    step: Annotated[int, Field(strict=True, ge=1)]
    steps: Annotated[int, Field(strict=True, ge=1)]
    first_day: datetime.date
    last_day: datetime.date
    series: Digest  # what identifies its series

    @classmethod
    def of(cls, manifest: ReleaseManifest) -> Self | None:
        """The step that a manifest states, if it does."""
        facts = manifest.cumulative
        if facts is None:
            return None
        days = {key: getattr(facts, key) for key in ("step", "steps", "first_day", "last_day")}
        return cls(**days, series=manifest.series or "")

    @property
    def in_words(self) -> str:
        """Which rows are in the sum."""
        return step_in_words(self.step, self.steps, self.first_day, self.last_day)


class ListedFacts(Model):
    """The facts of a release by which it is listed and found; from its manifest."""

    dataset: DatasetFacts
    kind: ReleaseKind
    release: Label
    published: str
    # number of the ledger's last entry when it was charged: the order of the releases. Listings of
    # earlier versions lack it; they have ids whose numbers are in that order, and are smaller.
    charged: Annotated[
        int, Field(strict=True, ge=0, default_factory=lambda facts: number_of(facts["release"]))
    ]
    mechanism: ListedMechanism
    normalisation: AnyNormalisation
    neighbours: Neighbours
    privacy_unit: ProtectedUnit
    rows: RowsFacts
    guarantee: ListedGuarantee
    period: Label | None = None  # label of the period; null with a budget for a lifetime
    step: ListedStep | None = None  # of a cumulative series
    names: Names = ()  # of the matrix columns

    @model_serializer(mode="wrap")
    def _without_step(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The facts, without a step that there is not."""
        facts: dict[str, Any] = handler(self)
        if self.step is None:
            facts.pop("step", None)
        return facts

    @property
    def publication(self) -> Publication:
        """What is published."""
        return publications[self.kind]

    @classmethod
    def of(cls, manifest: ReleaseManifest) -> Self:
        """The facts that a manifest states."""
        stated = manifest.guarantee
        return cls(
            dataset=manifest.dataset,
            kind=manifest.kind,
            release=manifest.release,
            published=manifest.published,
            charged=manifest.charged,
            mechanism=ListedMechanism(name=str(manifest.mechanism["name"])),
            normalisation=manifest.normalisation,
            neighbours=manifest.neighbours,
            privacy_unit=manifest.privacy_unit,
            rows=manifest.rows,
            guarantee=ListedGuarantee(
                **{key: getattr(stated, key) for key in ListedGuarantee.model_fields}
            ),
            period=manifest.period.label if manifest.period is not None else None,
            step=ListedStep.of(manifest),
            names=tuple(manifest.names),
        )

    @property
    def count_key(self) -> str:
        """The unit that the matrix averages over: ``persons`` or ``rows``."""
        return "persons" if self.privacy_unit == "person" else "rows"


class ListingEntry(Model):
    """A release in a listing, with the digests of the SHA256SUMS of its bundles."""

    facts: ListedFacts  # without the names of its columns
    columns: Annotated[int, Field(strict=True, ge=0)]  # index of them in `ReleaseTable.columns`
    sha256: Digest
    withdrawn: Withdrawal | None = None
    # of its estimates and reports, by their ids
    estimates: Annotated[dict[Label, Digest], Field(default_factory=dict)]
    reports: Annotated[dict[Label, Digest], Field(default_factory=dict)]
    page: Digest | None = None  # its page in the catalogue; null until it is written
    made_from: Digest | None = None  # digest of all that the page depends on


class ReleaseTable(Model):
    """Releases of one data set, in the order of publication, oldest first."""

    columns: tuple[Names, ...] = ()  # the different lists of column names
    releases: tuple[ListingEntry, ...] = ()

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        if any(each.columns >= len(self.columns) for each in self.releases):
            raise families.INCOMPLETE_FACTS(
                "A release refers to columns that the listing does not have."
            )
        return self


class ListingPart(ReleaseTable):
    """A part of the listing of a data set: a file of its own, named by its digest."""

    format: Literal[1]
    dataset: Slug


class DatasetListing(Model):
    """A data set in the root of a listing."""

    parts: tuple[Digest, ...]  # digests of the parts, oldest releases first
    releases: Annotated[int, Field(strict=True, ge=1)]  # number of its releases
    newest: ReleaseTable  # the newest of them
    superseded: tuple[Digest, ...] = ()  # parts of the root before, kept until the next is written
    made_from: Digest | None = None  # digest of all that its page depends on; null if that is more


class ListingRoot(Model):
    """The root of a listing, which is signed."""

    format: Literal[1]
    ledger: Anchor | None = None  # its last entry at that time; null without a ledger
    datasets: dict[Slug, DatasetListing]
    # of the catalogue and of its data sets, by their names; those of releases are in their entries
    pages: Annotated[dict[PageName, Digest], Field(default_factory=dict)]

    def is_of(self, ledger: str) -> bool:
        """Whether it was written with the ledger of this id."""
        return self.ledger is not None and self.ledger.ledger == ledger
