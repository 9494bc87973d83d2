"""Prefect's run history of a ledger: its runs, and the anchors that they attached."""

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
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Anchor, History
from gramercy.schemas.problem import Notice

_PAGE = 200
_RECENT = 20  # artifacts to look at; some may not be anchors
_RELEASE, _LEDGER = "release:", "ledger:"  # prefixes of tags


def ledger_tag(ledger_id: str) -> str:
    """The tag of every run that charges this ledger."""
    return f"{_LEDGER}{ledger_id}"


def attach_anchor(dataset: str, anchor: Anchor) -> None:
    """Attach the ledger's head to the run; it reveals nothing of the charges."""
    create_table_artifact(
        table=[anchor.model_dump()],
        key=_artifact_key(anchor.ledger),
        description=f"The ledger after a release of {dataset}",
    )


def verify_against_history(ledger: Ledger) -> None:
    """Verify a ledger against the newest anchor of its runs."""
    anchors = _anchors(ledger.head().ledger, _RECENT)
    for anchor in sorted(anchors, key=lambda each: each.seq)[-1:]:
        ledger.verify_anchor(anchor, "Prefect's history")


def read_history(ledger: Ledger) -> History:
    """The run history of a ledger."""
    ledger_id = ledger.head().ledger
    runs: dict[str, list[str]] = {}
    for run in _runs(ledger_tag(ledger_id)):
        for release in _tag_values(run, _RELEASE):
            runs.setdefault(release, []).append(run.name)
    elsewhere = [
        notice for dataset in ledger.datasets() for notice in _charged_elsewhere(dataset, ledger_id)
    ]
    return History(runs, _anchors(ledger_id), elsewhere)


def _tag_values(run: FlowRun, prefix: str) -> list[str]:
    return [tag.removeprefix(prefix) for tag in run.tags if tag.startswith(prefix)]


def _charged_elsewhere(dataset: str, ledger_id: str) -> Iterator[Notice]:
    """Releases of a data set of this name that were charged to another ledger."""
    by_ledger: dict[str, set[str]] = {}
    for run in _runs(f"dataset:{dataset}"):
        for other_id in set(_tag_values(run, _LEDGER)) - {ledger_id}:
            by_ledger.setdefault(other_id, set()).update(_tag_values(run, _RELEASE))
    for other_id, releases in sorted(by_ledger.items()):
        if releases:
            yield families.RECORDED(
                "{dataset}: {releases} releases of a data set of this name were "
                "charged to another ledger ({ledger}).",
                "If it is the same data set, that part of its budget was spent there.",
                dataset=dataset,
                releases=len(releases),
                ledger=other_id,
            )


def _runs(tag: str) -> list[FlowRun]:
    has_tag = FlowRunFilter(tags=FlowRunFilterTags(all_=[tag]))
    with get_client(sync_client=True) as client:
        runs: list[FlowRun] = []
        while True:
            page = client.read_flow_runs(flow_run_filter=has_tag, limit=_PAGE, offset=len(runs))
            runs += page
            if len(page) < _PAGE:
                return runs


def _anchors(ledger_id: str, limit: int | None = None) -> list[Anchor]:
    """Anchors of a ledger; artifacts that are not anchors are ignored."""
    of_ledger = ArtifactFilter(key=ArtifactFilterKey(any_=[_artifact_key(ledger_id)]))
    artifacts: list[Artifact] = []
    with get_client(sync_client=True) as client:
        while True:
            page = client.read_artifacts(
                artifact_filter=of_ledger,
                sort=ArtifactSort.CREATED_DESC,
                limit=limit or _PAGE,
                offset=len(artifacts),
            )
            artifacts += page
            if limit or len(page) < _PAGE:
                break
    anchors = []
    for each in artifacts:
        with contextlib.suppress(ValidationError, ValueError, TypeError, IndexError):
            anchors.append(Anchor.model_validate(json.loads(str(each.data))[0]))
    return [each for each in anchors if each.ledger == ledger_id]


def _artifact_key(ledger_id: str) -> str:
    return f"ledger-{ledger_id}"
