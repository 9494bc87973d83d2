"""The privacy budget: charged before any noise is drawn, appended to, never refunded."""

from ledger.examine import Finding
from ledger.ledger import Ledger
from ledger.statement import Charge, Raise, Statement, admit, unanswered

__all__ = ["Charge", "Finding", "Ledger", "Raise", "Statement", "admit", "unanswered"]
