"""Several releases as one Data Package (v2): tables and their data, described also in Croissant.

Croissant (ML Commons, 1.0) has no terms for differential privacy, and neither has its vocabulary
for responsible AI (RAI 1.0). So the guarantees are in words under the RAI terms for personal
information and for preprocessing, and in numbers in the table ``releases``.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.bundle_kinds import FURTHER, read_release, stems
from gramercy.archive.bundles.encoded_file import DECODING, ENCODED
from gramercy.archive.bundles.number_files import GROUPS, MARGINALS
from gramercy.archive.bundles.package import (
    PROFILE,
    fields,
    not_a_formula,
    resource,
    write_descriptor,
)
from gramercy.schemas.ledger_history import Timeline
from gramercy.schemas.manifest import ReleaseManifest, WithdrawalManifest
from gramercy.schemas.neighbours import Neighbours
from gramercy.schemas.publications import publications

_DIGEST = {"pattern": "[0-9a-f]{64}"}


@dataclass(frozen=True)
class CollectedRelease:
    """A verified release for a data package."""

    # The release, and the digest of its SHA256SUMS
    manifest: ReleaseManifest
    sha256: str
    folder: Path  # The folder of its files
    signed_by: str  # Id of the key that signed it
    withdrawn: WithdrawalManifest | None  # Its notice of withdrawal, if there is one

    @property
    def id(self) -> str:
        """DATASET/RELEASE."""
        return f"{self.manifest.dataset.id}/{self.manifest.release}"

    @property
    def files(self) -> dict[str, str]:
        """Its files in the package, by name; matrices are in long form.

        The ``matrix`` as released, ``lost`` moments, ``missing`` cells, its ``groups``, what a step
        of a series published (``encoded``), and ``marginals``.
        """
        files = {}
        if matrices := stems(self.manifest):
            files["matrix"] = f"{matrices[0]}.parquet"
        files |= {name: f"{FURTHER[name]}.parquet" for name in self.manifest.further_facts}
        if self.manifest.groups:
            files["groups"] = GROUPS
        if self.manifest.cumulative is not None:
            files["encoded"] = ENCODED
        if self.manifest.has_histograms:
            files["marginals"] = MARGINALS
        return files

    def path(self, file: str) -> str:
        """The path of one of its files in the package."""
        return f"releases/{self.id}/{file}"


def write_collection(
    folder: Path, releases: Sequence[CollectedRelease], timelines: Sequence[Timeline] | None
) -> None:
    """Write a data package into an empty folder."""
    resources = [
        _write_table(folder, "releases", _RELEASES, map(_release_row, releases), ["release"])
    ]
    if timelines is not None:
        rows = (row for timeline in timelines for row in _event_rows(timeline))
        resources.append(_write_table(folder, "budgets", _EVENTS, rows))
    groups = [row for release in releases for row in _group_rows(release)]
    if groups:
        resources.append(_write_table(folder, "groups", _GROUPS, groups, ["release", "group"]))
    for release in releases:
        resources += [_copied(folder, release, *each) for each in release.files.items()]
    curators = sorted({release.manifest.dataset.curator for release in releases})
    package = {
        "$schema": PROFILE,
        "name": "gramercy-catalogue",
        "title": "Matrices and histograms released with differential privacy",
        "contributors": [{"title": name, "roles": ["curator"]} for name in curators],
        "resources": resources,
    }
    write_descriptor(folder, package)
    published = max(release.manifest.published for release in releases)
    card = [(release.id, release.manifest.card, release.withdrawn) for release in releases]
    # Terms of Croissant's vocabulary for responsible AI.
    terms = {
        "personalSensitiveInformation": [
            f"{name}: {facts['statement']}" for name, facts, _ in card
        ],
        "dataPreprocessingProtocol": [
            f"{name}: {facts['pre_processing']}" for name, facts, _ in card
        ],
        "dataUseCases": [facts["intended_use"] for _, facts, _ in card],
        "dataLimitations": [
            *(f"{name}: noise by the mechanism {facts['mechanism']}." for name, facts, _ in card),
            *(f"{name} is withdrawn: {notice.reason}" for name, _, notice in card if notice),
        ],
    }
    write_croissant(folder, package, published, terms)


def _copied(folder: Path, release: CollectedRelease, kind: str, file: str) -> dict[str, Any]:
    """Copy a file of a release into a package; returns its entry there."""
    path = folder / release.path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(release.folder / file, path)
    name = release.id.replace("/", ".").lower()
    facts = resource(path, name if kind == "matrix" else f"{name}.{kind}", folder)
    described = {"description": DECODING} if kind == "encoded" else {}
    title = _title(release, kind)
    return facts | {"title": title, **described, "schema": {"fields": fields(path)}}


def _title(release: CollectedRelease, kind: str) -> str:
    dataset = release.manifest.dataset
    content = "Second moment" if release.manifest.publication.is_moment else "Precision matrix"
    contents = {
        "matrix": content,
        "lost": "Second moment of what clipping takes away",
        "missing": "Second moment of rows and their missing cells",
        "groups": "Second moments of groups",
        "encoded": "Whole numbers of a step of a series",
        "marginals": "Noisy histograms",
    }
    suffix = " (withdrawn)" if release.withdrawn else ""
    return f"{contents[kind]} as released: {dataset.title}, version {dataset.version}{suffix}"


def _write_table(
    folder: Path,
    name: str,
    columns: Mapping[str, Mapping[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    key: Sequence[str] = (),
) -> dict[str, Any]:
    """Write a CSV file; returns its entry in the data package."""
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: _cell(v) for k, v in row.items()} for row in rows)
    schema: dict[str, Any] = {"fields": [{"name": k, **facts} for k, facts in columns.items()]}
    return resource(path, name, folder) | {
        "encoding": "utf-8",
        "schema": schema | ({"primaryKey": list(key)} if key else {}),
    }


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return not_a_formula(value)
    return "INF" if isinstance(value, float) and math.isinf(value) else value


def _release_row(release: CollectedRelease) -> dict[str, Any]:
    facts, notice = release.manifest, release.withdrawn
    return {
        "release": release.id,
        "dataset": facts.dataset.id,
        "version": facts.dataset.version,
        "title": facts.dataset.title,
        "curator": facts.dataset.curator,
        "published": facts.published,
        "kind": facts.kind,
        "columns": len(facts.names),
        "mechanism": facts.mechanism["name"],
        "unit": facts.privacy_unit,
        "neighbours": facts.neighbours,
        **{name: getattr(facts.guarantee, name) for name in ("epsilon", "delta", "mu", "delta0")},
        "pure_epsilon": facts.guarantee.pure_epsilon,
        "state": "withdrawn" if notice else "published",
        "withdrawn": notice.date if notice else None,
        "reason": notice.reason if notice else None,
        "signed_by": release.signed_by,
        "sha256": release.sha256,
        **{kind: release.path(file) for kind, file in release.files.items()},
        **_series_cells(facts),
    }


def _series_cells(facts: ReleaseManifest) -> dict[str, Any]:
    """The place of a release in a cumulative series, and what decodes its numbers."""
    series = facts.cumulative
    if series is None:
        return {}
    return {
        "step": series.step,
        "steps": series.steps,
        "weights": " ".join(map(str, series.weights)),
        "earlier": " ".join(each.release for each in series.earlier),
        "bits": facts.calibration.lattice.bits,
        "shrinkage": facts.calibration.lattice.shrinkage,
    }


def _group_rows(release: CollectedRelease) -> Iterable[dict[str, Any]]:
    """The groups of a release, with the noise on the entries of their matrices."""
    facts = release.manifest
    laws = [facts.group_noise(group.rows.value) for group in facts.groups]
    if facts.groups and facts.is_whitened:  # in the units of the matrices, on average
        laws = [evidence.law for _, evidence in read_release(release.folder).evidence.groups]
    for group, noise in zip(facts.groups, laws, strict=True):
        yield {
            "release": release.id,
            "by": facts.by.name if facts.by else None,
            "group": group.level,
            "rows": group.rows.value,
            "rows_sd": group.rows.sd,
            "sd_diagonal": noise.sd_diagonal,
            "sd_off_diagonal": noise.sd_off_diagonal,
        }


def _event_rows(timeline: Timeline) -> Iterable[dict[str, Any]]:
    """Public rows of a timeline."""
    for event in timeline.events:
        facts = event.public_facts()
        name, pure, step = facts.pop("release"), facts.pop("pure"), facts.pop("series") or {}
        included = step.get("included_in")
        yield {
            "dataset": timeline.dataset,
            "period": timeline.window or None,
            **facts,
            "release": f"{timeline.dataset}/{name}" if name else None,
            "step": step.get("step"),
            "steps": step.get("steps"),
            "included_in": f"{timeline.dataset}/{included}" if included else None,
            "pure_epsilon": pure,
            "epsilon": event.charge.epsilon if event.charge else None,
            "spent_epsilon": event.spent,
        }


def _text(description: str, **constraints: Any) -> dict[str, Any]:
    return _field("string", description, constraints)


def _number(description: str, **constraints: Any) -> dict[str, Any]:
    return _field("number", description, {"minimum": 0, **constraints})


def _field(kind: str, description: str, constraints: Mapping[str, Any]) -> dict[str, Any]:
    field: dict[str, Any] = {"type": kind, "description": description}
    return field | ({"constraints": dict(constraints)} if constraints else {})


_RELEASES = {
    "release": _text("DATASET/RELEASE", required=True, unique=True),
    "dataset": _text("id of the data set", required=True),
    "version": _text("public label of the data", required=True),
    "title": _text("title of the data set", required=True),
    "curator": _text("publisher of the release", required=True),
    "published": _field("date", "day of publication", {"required": True}),
    "kind": _text("published object", enum=[*publications], required=True),
    "columns": _field(
        "integer", "number of columns of the matrix", {"required": True, "minimum": 1}
    ),
    "mechanism": _text("name of the noise mechanism", required=True),
    "unit": _text("unit of protection", enum=["row", "cell", "person"], required=True),
    "neighbours": _text("neighbouring relation", enum=[*Neighbours], required=True),
    "epsilon": _number("smallest epsilon of the guarantee at delta", required=True),
    "delta": _number("delta in the request", required=True),
    "mu": _number("mu of Gaussian differential privacy", required=True),
    "delta0": _number("probability with which mu may fail", required=True),
    "pure_epsilon": _number("epsilon of pure differential privacy, if any"),
    "state": _text("current state", enum=["published", "withdrawn"], required=True),
    "withdrawn": _field("date", "day of withdrawal, if any", {}),
    "reason": _text("reason of the withdrawal"),
    "signed_by": _text("id of the curator's key", required=True),
    "sha256": _text("digest of the bundle's SHA256SUMS", required=True, **_DIGEST),
    "matrix": _text("path of the matrix as released in this package, if any"),
    "lost": _text("path of the matrix of lost moments in this package, if any"),
    "missing": _text("path of the matrix of missing cells in this package, if any"),
    "groups": _text("path of the matrices of groups of rows in this package, if any"),
    "encoded": _text("path of the whole numbers of a step of a series in this package, if any"),
    "step": _field("integer", "number of the step in its series, from 1, if any", {"minimum": 1}),
    "steps": _field("integer", "number of steps of its series, if any", {"minimum": 1}),
    "weights": _text("weights of the steps so far in what the step published, in units of 2^-12"),
    "earlier": _text("releases of the steps before it, in order"),
    "bits": _field("integer", "K: a unit of the lattice of a step is 2^-K", {"minimum": 0}),
    "shrinkage": _number("c: factor of the rows of a step on the lattice"),
    "marginals": _text("path of the noisy histograms in this package, if there are any"),
}
_GROUPS = {
    "release": _text("DATASET/RELEASE", required=True),
    "by": _text("column whose levels are the groups", required=True),
    "group": _text("name of the group", required=True),
    "rows": _number("number of rows or persons; noisy", required=True),
    "rows_sd": _number("standard deviation of the noise on rows", required=True),
    "sd_diagonal": _number("standard deviation of the noise on diagonal entries", required=True),
    "sd_off_diagonal": _number("standard deviation of the noise on other entries", required=True),
}
_EVENTS = {
    "dataset": _text("id of the data set", required=True),
    "period": _text("period of the data, if budgets are per period"),
    "at": _field("date", "day, UTC", {"required": True}),
    "what": _text("event", enum=["registered", "raised", "lowered", "charged"], required=True),
    "release": _text("charged release, as DATASET/RELEASE"),
    "version": _text("public label of the data"),
    "step": _field("integer", "number of the step in its series, from 1, if any", {"minimum": 1}),
    "steps": _field("integer", "number of steps of its series, if any", {"minimum": 1}),
    "included_in": _text("release whose charge is for this step as well, if any"),
    "mechanism": _text("name of the noise mechanism, if known"),
    "state": _text("current state of the charge; 'spent' is a failure that stays charged"),
    "reason": _text("reason of a failure or a withdrawal"),
    "mu": _number("charged mu"),
    "delta0": _number("probability with which mu may fail"),
    "pure_epsilon": _number("charged epsilon of pure differential privacy, if any"),
    "epsilon": _number("epsilon of this charge alone, at the budget's delta"),
    "spent_epsilon": _number("epsilon of all charges so far, at the budget's delta", required=True),
    "budget_epsilon": _number("epsilon of the budget after the event", required=True),
    "budget_delta": _number("delta of the budget after the event", required=True),
    "sha256": _text("digest of the bundle's SHA256SUMS, if any", **_DIGEST),
}


CROISSANT = "croissant.json"
CONFORMS_TO = ("http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0")
_CROISSANT_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject"),
    *("fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField"),
    *("path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
    *("separator", "source", "subField", "transform"),
)
# The context that the specification recommends, word for word.
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    **{term: f"cr:{term}" for term in _CROISSANT_TERMS},
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
_TYPES = {"string": "sc:Text", "number": "sc:Float", "integer": "sc:Integer", "date": "sc:Date"}
_FORMATS = {"csv": "text/csv", "parquet": "application/x-parquet"}


def write_croissant(
    folder: Path, package: Mapping[str, Any], published: str, terms: Mapping[str, Sequence[str]]
) -> None:
    """Write croissant.json into the folder of a data package.

    Parameters
    ----------
    package
        The content of its datapackage.json: every resource is a table with a schema.
    """
    content = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        "name": package["name"],
        "description": package["title"],
        "datePublished": published,
        "creator": [
            {"@type": "sc:Organization", "name": each["title"]} for each in package["contributors"]
        ],
        "keywords": ["differential privacy", "second moment", "histograms"],
        **{f"rai:{term}": list(dict.fromkeys(texts)) for term, texts in terms.items()},
        "distribution": [_croissant_file(folder, each) for each in package["resources"]],
        "recordSet": [_croissant_table(each) for each in package["resources"]],
    }
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / CROISSANT).write_text(text + "\n", encoding="utf-8", newline="\n")


def _croissant_file(folder: Path, resource: Mapping[str, Any]) -> dict[str, Any]:
    path = resource["path"]
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "contentSize": f"{(folder / path).stat().st_size} B",
        "encodingFormat": _FORMATS[resource["format"]],
        "sha256": resource["hash"].removeprefix("sha256:"),
    }


def _croissant_table(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The record set of a file; its id is the resource's name, and prefixes those of its fields."""
    name, schema = resource["name"], resource["schema"]
    key = [{"@id": f"{name}/{column}"} for column in schema.get("primaryKey", ())]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": resource.get("title", name),
        **({"key": key} if key else {}),
        "field": [_croissant_field(name, resource["path"], field) for field in schema["fields"]],
    }


def _croissant_field(table: str, path: str, field: Mapping[str, Any]) -> dict[str, Any]:
    column = field["name"]
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column}",
        "name": column,
        "description": field.get("description", column),
        "dataType": _TYPES[field["type"]],
        "source": {"fileObject": {"@id": path}, "extract": {"column": column}},
    }
