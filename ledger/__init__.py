"""The privacy budget: charged before any noise is drawn, appended to, never refunded."""

from ledger.ledger import Ledger
from ledger.statement import Charge, Statement, admit, spent_failure

__all__ = ["Charge", "Ledger", "Statement", "admit", "spent_failure"]
