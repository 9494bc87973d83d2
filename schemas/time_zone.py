"""Names of time zones, checked against those that this machine knows."""

from __future__ import annotations

import zoneinfo
from typing import Annotated

from pydantic import AfterValidator

from gramercy.schemas import families


def _known(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise families.VALUE(
            "Unknown time zone.",
            "Write one such as Europe/Berlin.",
        ) from None
    return name


TimeZone = Annotated[str, AfterValidator(_known)]
