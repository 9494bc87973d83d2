"""The OpenDP Deployments Registry's schema in this project's notation, and Croissant's rules.

The schema has the keys, types, choices and order of `schemas/deployments-schema.yaml` in
`opendp/deployments-registry-data` at `SCHEMA_COMMIT`. With GRAMERCY_REGISTRY_SCHEMA=FILE, entries
are also checked against a copy of that file.

mlcroissant is not a dependency of the tests, because it needs stubs of pandas, which change what
mypy finds in this project. `pip install mlcroissant` into a separate environment adds it.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from jsonschema import Draft7Validator

SCHEMA_COMMIT = "057e5d81cf60150dd3307e0cf4504b957802fb3b"
TEXT: dict[str, Any] = {"type": "string"}
NUMBER = {"type": "number"}
ANYTHING: dict[str, Any] = {}


def enum(*values: Any) -> dict[str, Any]:
    return {"enum": list(values)}


def keys(required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """An object without further keys."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


CURATOR = keys(
    "data_curator_name data_curator_type",
    data_curator_name=TEXT,
    data_curator_type=enum("Government", "Industry", "Nonprofit"),
)
DEPLOYMENT = keys(
    "basic administrative",
    basic=keys(
        "name data_curators description intended_use data_product_type data_product_region"
        " publication_date",
        name=TEXT,
        data_curators={"type": "array", "minItems": 1, "items": CURATOR},
        description=TEXT,
        intended_use=TEXT,
        data_product_type=enum(
            *("Summary statistics", "Machine learning model", "Dataset", "Synthetic data"),
            *("Interactive API", "SQL queries"),
        ),
        data_product_region=TEXT,
        data_product_sector=enum(
            *("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
        ),
        publication_date=TEXT | {"format": "date"},
    ),
    dp_variant=keys(
        "",
        variant_name=enum(
            *("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")
        ),
        data_domain=TEXT,
        unprotected_quantities=TEXT,
    ),
    privacy_loss=keys(
        "",
        privacy_unit=TEXT,
        privacy_unit_details=TEXT,
        number_of_privacy_units={"type": "integer"},
        privacy_parameters=keys(
            "", epsilon=NUMBER, delta={"type": ["number", "string"]}, rho=NUMBER
        ),
        privacy_parameters_details=ANYTHING,
    ),
    deployment_model=keys(
        "",
        model_name=enum("Local", "Central", "Shuffle", "Federated", "Varies"),
        model_name_details=TEXT,
        trust_assumptions=TEXT,
        actors=ANYTHING,
        release_type=enum("One release", "Many releases"),
        release_type_details=TEXT,
        data_source_type=enum("Static", "Dynamic"),
        data_source_type_details=TEXT,
        access_type=enum("Interactive", "Non-interactive"),
        access_type_details=TEXT,
    ),
    implementation=keys(
        "",
        preprocessing_and_hyperparameter_tuning=TEXT,
        mechanisms=TEXT,
        composition=TEXT,
        post_processing=TEXT,
        justification=TEXT,
        utility=ANYTHING,
        additional_information=ANYTHING,
    ),
    administrative=keys(
        "status registry_authors tier",
        evidence_sources={"type": "object"},
        status=enum(
            *("Converted", "Draft", "Pending", "Changes Required", "Approved"),
            *("Approved (Update Requested)", "Approved (Pending)"),
        ),
        registry_authors={"type": "array", "minItems": 1, "items": TEXT},
        tier=enum(1, 2, 3),
    ),
)
SCHEMA = keys("url_slug deployment", url_slug=TEXT, deployment=DEPLOYMENT)


def _schemas() -> Iterator[dict[str, Any]]:
    """The pinned structure, and the registry's own file where there is a copy."""
    yield SCHEMA
    if copy := os.environ.get("GRAMERCY_REGISTRY_SCHEMA"):
        yield yaml.safe_load(Path(copy).read_text(encoding="utf-8"))


def registry_errors(entry: dict[str, Any]) -> list[str]:
    """Where an entry contradicts the schema, or the order of its keys, as in the template."""
    return _order_errors(entry, SCHEMA) + [
        f"{'.'.join(map(str, error.path))}: {error.message}"
        for schema in _schemas()
        for error in Draft7Validator(
            schema, format_checker=Draft7Validator.FORMAT_CHECKER
        ).iter_errors(entry)
    ]


def _order_errors(stated: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    known = [key for key in schema["properties"] if key in stated]
    errors = [] if list(stated) == known else [str(list(stated))]
    for key, value in stated.items():
        if isinstance(value, dict) and "properties" in schema["properties"].get(key, {}):
            errors += _order_errors(value, schema["properties"][key])
    return errors


DATA_TYPES = {"sc:Text", "sc:Float", "sc:Integer", "sc:Date"}
HAS_MLCROISSANT = importlib.util.find_spec("mlcroissant") is not None


def croissant_errors(path: Path) -> list[str]:
    """Where croissant.json contradicts the specification or the files next to it."""
    content = json.loads(path.read_text(encoding="utf-8"))
    errors = [
        f"{key} is missing" for key in ("@context", "name", "description") if not content.get(key)
    ]
    if content["@type"] != "sc:Dataset":
        errors.append("not a data set")
    if "http://mlcommons.org/croissant/1.0" not in content["conformsTo"]:
        errors.append("no version")
    prefixes = {key for key in content["@context"] if key != "@language"}
    errors += [
        f"{key} has no prefix of the context"
        for key in content
        if ":" in key and key.split(":")[0] not in prefixes
    ]
    columns = {}
    for file in content["distribution"]:
        data = (path.parent / file["contentUrl"]).read_bytes()
        if file["sha256"] != hashlib.sha256(data).hexdigest():
            errors.append(f"{file['@id']}: sha256")
        if file["contentSize"] != f"{len(data)} B":
            errors.append(f"{file['@id']}: contentSize")
        columns[file["@id"]] = _columns(path.parent / file["contentUrl"], file["encodingFormat"])
    ids = list(columns)
    for table in content["recordSet"]:
        fields = [field["@id"] for field in table["field"]]
        ids += [table["@id"], *fields]
        errors += [
            f"{each['@id']}: no field" for each in table.get("key", ()) if each["@id"] not in fields
        ]
        for field in table["field"]:
            source = field["source"]
            if source["extract"]["column"] not in columns[source["fileObject"]["@id"]]:
                errors.append(f"{field['@id']}: no column")
            if field["dataType"] not in DATA_TYPES:
                errors.append(f"{field['@id']}: {field['dataType']}")
    if len(ids) != len(set(ids)):
        errors.append("ids are not unique")
    return errors + (_mlcroissant_errors(path) if HAS_MLCROISSANT else [])


def _columns(path: Path, encoding: str) -> list[str]:
    if encoding == "application/x-parquet":
        names: list[str] = pq.read_schema(path).names
        return names
    assert encoding == "text/csv"
    with path.open(encoding="utf-8", newline="") as stream:
        return next(csv.reader(stream))


def _mlcroissant_errors(path: Path) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlcroissant

        try:
            dataset = mlcroissant.Dataset(jsonld=str(path))
            for table in dataset.metadata.record_sets:
                records: list[Any] = list(dataset.records(table.id))
                assert records, table.id
        except mlcroissant.ValidationError as error:
            return [str(error)]
    return list(dataset.metadata.ctx.issues.errors)
