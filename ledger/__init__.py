"""The privacy budget: charged before any noise is drawn, appended to, never refunded."""

from ledger.ledger import Charge, Ledger, Statement

__all__ = ["Charge", "Ledger", "Statement"]
