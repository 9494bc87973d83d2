"""The privacy budget ledger: charged before any noise is drawn, append-only, never refunded."""

from gramercy.common.extras import publishing

with publishing():
    from gramercy.ledger.budget_ledger import Ledger
    from gramercy.ledger.checks import check_before, check_budget, spent_failure
    from gramercy.ledger.integrity import Finding
    from gramercy.ledger.series import ChargedSeries, SeriesCharge
    from gramercy.ledger.statement import BudgetChange, Charge, Statement

__all__ = [
    "BudgetChange",
    "Charge",
    "ChargedSeries",
    "Finding",
    "Ledger",
    "SeriesCharge",
    "Statement",
    "check_before",
    "check_budget",
    "spent_failure",
]
