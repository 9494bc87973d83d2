"""What Prefect's history remembers of a ledger: its runs, and where the ledger stood at each."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from prefect import get_client
from prefect.artifacts import create_table_artifact
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterKey,
    FlowRunFilter,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import Artifact, FlowRun
from prefect.client.schemas.sorting import ArtifactSort
from pydantic import ValidationError

from gramercy.ledger import Ledger
from gramercy.schemas.anchor import Anchor
from gramercy.schemas.run_history import History

_PAGE = 200
_LATELY = 20  # artifacts: what others may have put among them tells nothing
_RELEASE, _LEDGER = "release:", "ledger:"


def ledger_tag(ledger: str) -> str:
    """The tag of every run that charged this ledger."""
    return f"{_LEDGER}{ledger}"


def tell(dataset: str, anchor: Anchor) -> None:
    """Attach to the run where the ledger stands: it holds nothing of what was charged."""
    create_table_artifact(
        table=[anchor.model_dump()],
        key=_key(anchor.ledger),
        description=f"The ledger after a release of {dataset}",
    )


def hold_to_history(ledger: Ledger) -> None:
    """Hold a ledger to where its runs have seen it stand.

    Raises
    ------
    UntrustedLedger
        If it is older than that, or rewritten: a restored backup has forgotten charges.
    """
    told = _anchors(ledger.head().ledger, _LATELY)
    for anchor in sorted(told, key=lambda each: each.seq)[-1:]:
        ledger.hold_to(anchor, "Prefect's history")


def recall(books: Ledger) -> History:
    """All that Prefect remembers of a ledger."""
    ledger = books.head().ledger
    runs: dict[str, list[str]] = {}
    for run in _runs(ledger_tag(ledger)):
        for release in _told(run, _RELEASE):
            runs.setdefault(release, []).append(run.name)
    elsewhere = [words for name in books.datasets() for words in _elsewhere(name, ledger)]
    return History(runs, _anchors(ledger), elsewhere)


def _told(run: FlowRun, of: str) -> list[str]:
    """What the tags of a run say of something."""
    return [tag.removeprefix(of) for tag in run.tags if tag.startswith(of)]


def _elsewhere(dataset: str, ledger: str) -> Iterator[str]:
    """Runs that published a data set of this name, and charged another ledger."""
    others: dict[str, set[str]] = {}
    for run in _runs(f"dataset:{dataset}"):
        for other in set(_told(run, _LEDGER)) - {ledger}:
            others.setdefault(other, set()).update(_told(run, _RELEASE))
    for other, releases in sorted(others.items()):
        if releases:
            yield (
                f"{dataset}: {len(releases)} releases of a data set of this name were charged to "
                f"another ledger, {other}. If it is the same data set, its budget was spent there."
            )


def _runs(tag: str) -> Iterator[FlowRun]:
    of_ledger = FlowRunFilter(tags=FlowRunFilterTags(all_=[tag]))
    with get_client(sync_client=True) as client:
        found: list[FlowRun] = []
        while True:
            page = client.read_flow_runs(flow_run_filter=of_ledger, limit=_PAGE, offset=len(found))
            found += page
            if len(page) < _PAGE:
                return iter(found)


def _anchors(ledger: str, limit: int | None = None) -> list[Anchor]:
    """Anchors of a ledger; artifacts that are not anchors are ignored."""
    of_ledger = ArtifactFilter(key=ArtifactFilterKey(any_=[_key(ledger)]))
    found: list[Artifact] = []
    with get_client(sync_client=True) as client:
        while True:
            page = client.read_artifacts(
                artifact_filter=of_ledger,
                sort=ArtifactSort.CREATED_DESC,
                limit=limit or _PAGE,
                offset=len(found),
            )
            found += page
            if limit or len(page) < _PAGE:
                break
    anchors = []
    for each in found:
        with contextlib.suppress(ValidationError, ValueError, TypeError, IndexError):
            anchors.append(Anchor.model_validate(json.loads(str(each.data))[0]))
    return [each for each in anchors if each.ledger == ledger]


def _key(ledger: str) -> str:
    return f"ledger-{ledger}"
