"""The privacy budget: charged before any noise is drawn, appended to, never refunded."""

from gramercy.common.extras import publishing

with publishing():
    from gramercy.ledger.checks import admit, unanswered
    from gramercy.ledger.examine import Finding
    from gramercy.ledger.reader import LedgerReader
    from gramercy.ledger.statement import Charge, Raise, Statement
    from gramercy.ledger.writer import Ledger

__all__ = [
    "Charge",
    "Finding",
    "Ledger",
    "LedgerReader",
    "Raise",
    "Statement",
    "admit",
    "unanswered",
]
