"""Many releases as one Data Package (v2): a table of them, a table of budgets, every matrix."""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.archive.package import PROFILE, fields, resource, write_descriptor
from gramercy.archive.release_bundle import stems
from gramercy.schemas.manifest import ReleaseManifest, WithdrawalManifest
from gramercy.schemas.timeline import Timeline

_DIGEST = {"pattern": "[0-9a-f]{64}"}


@dataclass(frozen=True)
class Held:
    """A release that is there to be read.

    Parameters
    ----------
    manifest, sha256
        The release, and the digest of its SHA256SUMS.
    folder
        Where its files are.
    signed_by
        Id of the key that signed it.
    withdrawn
        The notice that it was withdrawn, if there is one.
    """

    manifest: ReleaseManifest
    sha256: str
    folder: Path
    signed_by: str
    withdrawn: WithdrawalManifest | None

    @property
    def id(self) -> str:
        """DATASET/RELEASE."""
        return f"{self.manifest.dataset.id}/{self.manifest.release}"

    @property
    def matrix(self) -> str:
        """The file of the matrix as released, in the long form."""
        return f"{stems(self.manifest)[0]}.parquet"


def write_collection(
    folder: Path, releases: Sequence[Held], timelines: Sequence[Timeline] | None
) -> None:
    """Fill an empty folder with a data package.

    Parameters
    ----------
    folder
        Where.
    releases
        What is in it.
    timelines
        What became of the budgets; None where no ledger tells.
    """
    described = [_table(folder, "releases", _RELEASES, map(_release_row, releases), ["release"])]
    if timelines is not None:
        rows = (row for each in timelines for row in _event_rows(each))
        described.append(_table(folder, "budgets", _EVENTS, rows))
    for each in releases:
        place = folder / "releases" / each.id / each.matrix
        place.parent.mkdir(parents=True)
        shutil.copyfile(each.folder / each.matrix, place)
        facts = resource(place, each.id.replace("/", ".").lower(), folder)
        del facts["bytes"]  # frictionless counts none in Parquet; the digest says more anyway
        facts |= {"title": _title(each), "schema": {"fields": fields(place)}}
        described.append(facts)
    curators = sorted({each.manifest.dataset.curator for each in releases})
    write_descriptor(
        folder,
        {
            "$schema": PROFILE,
            "name": "gramercy-catalogue",
            "title": "Matrices released with differential privacy",
            "contributors": [{"title": name, "roles": ["curator"]} for name in curators],
            "resources": described,
        },
    )


def _title(held: Held) -> str:
    facts = held.manifest.dataset
    matrix = "Precision matrix" if held.manifest.kind == "precision" else "Second moment"
    gone = " (withdrawn)" if held.withdrawn else ""
    return f"{matrix} as released: {facts.title}, version {facts.version}{gone}"


def _table(
    folder: Path,
    name: str,
    columns: Mapping[str, Mapping[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    key: Sequence[str] = (),
) -> dict[str, Any]:
    """Write a CSV file; what a data package says of it."""
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: _cell(v) for k, v in row.items()} for row in rows)
    schema: dict[str, Any] = {"fields": [{"name": k, **said} for k, said in columns.items()]}
    return resource(path, name, folder) | {
        "encoding": "utf-8",
        "schema": schema | ({"primaryKey": list(key)} if key else {}),
    }


def _cell(value: Any) -> Any:
    return "INF" if isinstance(value, float) and math.isinf(value) else value


def _release_row(held: Held) -> dict[str, Any]:
    facts, gone = held.manifest, held.withdrawn
    return {
        "release": held.id,
        "dataset": facts.dataset.id,
        "version": facts.dataset.version,
        "title": facts.dataset.title,
        "curator": facts.dataset.curator,
        "published": facts.published,
        "kind": facts.kind,
        "columns": len(facts.names),
        "mechanism": facts.mechanism["name"],
        "unit": facts.unit,
        "neighbours": facts.neighbours,
        **{name: getattr(facts.guarantee, name) for name in ("epsilon", "delta", "mu", "delta0")},
        "pure_epsilon": facts.guarantee.pure,
        "state": "withdrawn" if gone else "published",
        "withdrawn": gone.on if gone else None,
        "reason": gone.reason if gone else None,
        "signed_by": held.signed_by,
        "sha256": held.sha256,
        "matrix": f"releases/{held.id}/{held.matrix}",
    }


def _event_rows(timeline: Timeline) -> Iterable[dict[str, Any]]:
    """As the public may have it: days, for a time of day tells how long a table took to be read.

    Why a budget was changed stays in the ledger, for which it was written.
    """
    for event in timeline.events:
        facts = event.facts()
        name, pure = facts.pop("release"), facts.pop("pure")
        yield {
            "dataset": timeline.dataset,
            "year_of_data": timeline.window or None,
            **facts,
            "at": event.at[:10],
            "reason": event.reason if event.charge else None,
            "release": f"{timeline.dataset}/{name}" if name else None,
            "pure_epsilon": pure,
            "epsilon": event.charge.epsilon if event.charge else None,
            "spent_epsilon": event.spent,
        }


def _text(description: str, **constraints: Any) -> dict[str, Any]:
    return _of("string", description, constraints)


def _number(description: str, **constraints: Any) -> dict[str, Any]:
    return _of("number", description, {"minimum": 0, **constraints})


def _of(kind: str, description: str, constraints: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"type": kind, "description": description}
    return said | ({"constraints": dict(constraints)} if constraints else {})


_RELEASES = {
    "release": _text("DATASET/RELEASE", required=True, unique=True),
    "dataset": _text("id of the data set", required=True),
    "version": _text("public label of the data", required=True),
    "title": _text("of the data set", required=True),
    "curator": _text("who published it", required=True),
    "published": _of("date", "the day", {"required": True}),
    "kind": _text(
        "what is published", enum=["second-moment", "rows", "reports", "precision"], required=True
    ),
    "columns": _of("integer", "of the matrix", {"required": True, "minimum": 1}),
    "mechanism": _text("where the noise is from", required=True),
    "unit": _text("what is protected", enum=["row", "cell", "person"], required=True),
    "neighbours": _text("its change", enum=["replace-one", "add-remove"], required=True),
    "epsilon": _number("the smallest that holds at delta", required=True),
    "delta": _number("the one that was asked for", required=True),
    "mu": _number("of Gaussian differential privacy", required=True),
    "delta0": _number("with which mu may fail", required=True),
    "pure_epsilon": _number("where there is one"),
    "state": _text("by now", enum=["published", "withdrawn"], required=True),
    "withdrawn": _of("date", "the day, where it was", {}),
    "reason": _text("why it was withdrawn"),
    "signed_by": _text("id of the curator's key", required=True),
    "sha256": _text("digest of the bundle's SHA256SUMS", required=True, **_DIGEST),
    "matrix": _text("where the matrix as released lies in this package", required=True),
}
_EVENTS = {
    "dataset": _text("id of the data set", required=True),
    "year_of_data": _text("where budgets are per calendar year of the data"),
    "at": _of("date", "the day, UTC", {"required": True}),
    "what": _text(
        "what happened", enum=["registered", "raised", "lowered", "charged"], required=True
    ),
    "release": _text("DATASET/RELEASE that was charged"),
    "version": _text("public label of the data"),
    "mechanism": _text("where a release tells it"),
    "state": _text("of the charge, by now; 'spent' is a failure that is paid for"),
    "reason": _text("of a failure or a withdrawal"),
    "mu": _number("that was charged"),
    "delta0": _number("with which mu may fail"),
    "pure_epsilon": _number("that was charged, where there is one"),
    "epsilon": _number("of the charge alone, at the budget's delta"),
    "spent_epsilon": _number("of all charges so far, at the budget's delta", required=True),
    "budget_epsilon": _number("in force from then on", required=True),
    "budget_delta": _number("in force from then on", required=True),
    "sha256": _text("digest of the bundle's SHA256SUMS, where there is one", **_DIGEST),
}
