"""The privacy budget: charged before any noise is drawn, appended to, never refunded."""

from ledger.ledger import Ledger
from ledger.statement import Charge, Raise, Statement, admit, spent_failure

__all__ = ["Charge", "Ledger", "Raise", "Statement", "admit", "spent_failure"]
