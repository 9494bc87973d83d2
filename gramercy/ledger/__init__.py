"""The privacy budget: charged before any noise is drawn, appended to, never refunded."""

from gramercy.ledger.examine import Finding
from gramercy.ledger.ledger import Ledger
from gramercy.ledger.statement import Charge, Raise, Statement, admit, unanswered

__all__ = ["Charge", "Finding", "Ledger", "Raise", "Statement", "admit", "unanswered"]
