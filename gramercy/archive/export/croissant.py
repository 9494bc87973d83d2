"""croissant.json (ML Commons Croissant 1.0): the files and tables of a data package.

Croissant has no terms for differential privacy, and neither has its vocabulary for responsible AI
(RAI 1.0). So the guarantees are in words under the RAI terms for personal information and for
preprocessing, and in numbers in the table ``releases``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    folder
        The folder; all files are in place.
    package
        The content of its datapackage.json: every resource is a table with a schema.
    published
        Day of the last publication, as YYYY-MM-DD.
    terms
        Statements by term of the RAI vocabulary, without its prefix.
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
        "distribution": [_file(folder, each) for each in package["resources"]],
        "recordSet": [_table(each) for each in package["resources"]],
    }
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / CROISSANT).write_text(text + "\n", encoding="utf-8", newline="\n")


def _file(folder: Path, resource: Mapping[str, Any]) -> dict[str, Any]:
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


def _table(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The record set of a file; its id is the resource's name, and prefixes those of its fields."""
    name, schema = resource["name"], resource["schema"]
    key = [{"@id": f"{name}/{column}"} for column in schema.get("primaryKey", ())]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": resource.get("title", name),
        **({"key": key} if key else {}),
        "field": [_field(name, resource["path"], field) for field in schema["fields"]],
    }


def _field(table: str, path: str, field: Mapping[str, Any]) -> dict[str, Any]:
    column = field["name"]
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column}",
        "name": column,
        "description": field.get("description", column),
        "dataType": _TYPES[field["type"]],
        "source": {"fileObject": {"@id": path}, "extract": {"column": column}},
    }
