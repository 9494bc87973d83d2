"""Every ledger of these tests is migrated, as those of users are."""

from __future__ import annotations

import pytest

from gramercy.ledger import schema_upgrade
from tests.support.ledger_schema import migrate


@pytest.fixture(autouse=True)
def migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_upgrade, "_upgrade", migrate)
