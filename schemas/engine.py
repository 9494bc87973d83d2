"""The engine that reads and sums a table."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from gramercy.schemas import families
from gramercy.schemas.form_choices import Select
from gramercy.schemas.model import Model, expand_kind
from gramercy.schemas.url import has_secrets

_ADDRESS = r"^[a-z]+://[^\s@?#%\\]+$"


class LocalEngine(Model):
    """The table is read and summed by the process that publishes."""

    kind: Literal["local"] = "local"


def _address(text: str) -> str:
    if len(text) > 300 or not re.fullmatch(_ADDRESS, text) or has_secrets(text):
        raise families.VALUE(
            "Must be an address such as tls://10.0.0.5:8786, without user, password, query and "
            "fragment.",
            "Name certificates in Dask's own configuration.",
        )
    return text


# The pattern is for web forms, which know only the JSON schema.
Scheduler = Annotated[
    str,
    AfterValidator(_address),
    WithJsonSchema({"type": "string", "pattern": _ADDRESS, "maxLength": 300}),
]


class DaskEngine(Model):
    """The table is read and summed by the workers of a Dask cluster, with the same result.

    Parameters
    ----------
    scheduler
        Address of the Dask scheduler, such as ``tls://10.0.0.5:8786``. Default: the address in
        Dask's own configuration. Prefect stores it, so it must not have a user, password, query or
        fragment.
    """

    kind: Literal["dask"]
    scheduler: Scheduler | None = None


Engine = Annotated[
    Annotated[LocalEngine | DaskEngine, Field(discriminator="kind"), Select("kind")],
    BeforeValidator(expand_kind),
]
