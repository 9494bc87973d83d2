"""A referee for croissant.json: the specification's rules, and mlcroissant where it is installed.

mlcroissant is not a dependency of the tests, because it needs stubs of pandas, which change what
mypy finds in this project. `pip install mlcroissant` into a separate environment adds it.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

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
