"""The models of registry entries follow the pinned schema of the OpenDP Deployments Registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from gramercy.schemas import deployments_registry
from gramercy.schemas.deployments_registry import RegistryEntry
from tests.support.public_formats import SCHEMA, SCHEMA_COMMIT, registry_errors

ROOT = Path(__file__).parents[3]
# What earlier versions of Gramercy exported, and the registry refused.
OUTDATED = {
    "url_slug": "toy--v1-r1",
    "status": "Draft",
    "tier": 3,
    "deployment": {
        "basic": {
            "name": "A toy",
            "data_curators": ["A curator"],
            "description": "A matrix.",
            "intended_use": "Analysis.",
            "data_product_type": "Summary statistics",
            "data_product_region": "Everywhere",
            "publication_date": "01/02/2026",
        },
        "dp_flavor": {"name": "Pure DP"},
        "accounting": {"composition": "basic"},
    },
}


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation: itself, or the item of a tuple."""
    inner = next(iter(get_args(annotation)), annotation)
    return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None


def compare(model: type[BaseModel], schema: dict[str, Any]) -> None:
    """Every key of the model is one of the schema, in its order; none that it requires is left."""
    fields, known = model.model_fields, schema["properties"]
    assert list(fields) == [key for key in known if key in fields], model
    assert set(schema["required"]) <= {k for k, each in fields.items() if each.is_required()}
    for name, field in fields.items():
        choices = [each for each in get_args(field.annotation) if isinstance(each, str | int)]
        if choices:
            assert choices == known[name]["enum"], name
        if inner := model_of(field.annotation):
            compare(inner, known[name].get("items", known[name]))


def test_models_follow_the_pinned_schema() -> None:
    compare(RegistryEntry, SCHEMA)


def test_pinned_commit_is_documented() -> None:
    assert SCHEMA_COMMIT in (deployments_registry.__doc__ or "")
    assert SCHEMA_COMMIT in (ROOT / "docs/how-to/export.md").read_text(encoding="utf-8")


def test_outdated_entry_is_found() -> None:
    errors = "\n".join(registry_errors(OUTDATED))
    for expected in (
        "'status', 'tier' were unexpected",
        "'administrative' is a required property",
        "'accounting', 'dp_flavor' were unexpected",
        "'A curator' is not of type 'object'",
        "'01/02/2026' is not a 'date'",
    ):
        assert expected in errors
