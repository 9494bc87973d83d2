"""What a release costs and what is left: codes 300 to 329."""

from __future__ import annotations

from gramercy.schemas.errors import BudgetRefused, RequestError, SpentFailure, TermsChanged
from gramercy.schemas.problem import problem


@problem(
    "GRM-300",
    BudgetRefused,
    "The budget of {budget} is exceeded. At its delta={delta:g}, this release needs "
    "epsilon={needed:.4g} (mu={needed_mu:.4g}); epsilon={left:.4g} (mu={left_mu:.4g}) is left of "
    "epsilon={epsilon:g}, after epsilon={spent:.4g} (mu={spent_mu:.4g}) was spent.",
    "Ask for a smaller epsilon (a tenth of the budget's delta is always set aside), or raise the "
    "budget with 'gramercy budget --raise'.",
)
def budget_exceeded(
    budget: str,
    needed: float,
    needed_mu: float,
    left: float,
    left_mu: float,
    epsilon: float,
    delta: float,
    spent: float,
    spent_mu: float,
) -> None:
    """The release costs more than what is left of the budget. Nothing was charged."""


@problem(
    "GRM-301",
    BudgetRefused,
    "The failure share of the budget of {budget} is exceeded: this release needs "
    "delta0={needed:.3g}, and delta0={spent:.3g} of {share:.3g} was spent.",
    "Choose a mechanism with delta0 = 0 or a smaller delta0, or raise the budget's delta with "
    "'gramercy budget --raise'.",
)
def failure_share_exceeded(budget: str, needed: float, spent: float, share: float) -> None:
    """A tenth of the budget's delta is set aside for mechanisms whose guarantee in mu may fail.

    The failure probabilities (delta0) of all releases add up, and with this release their sum would
    exceed that share.
    """


@problem(
    "GRM-302",
    SpentFailure,
    "Release {release} was charged (mu={mu:.4g}) and then interrupted: the charge is spent, and "
    "its noise is never drawn again.",
    "To publish this version under a new charge, add --new-charge.",
)
def charge_interrupted(release: str, mu: float) -> None:
    """An earlier run of the same request was charged and published nothing.

    Drawing the noise a second time could reveal more than was charged, so the charge stays spent.
    """


@problem(
    "GRM-303",
    SpentFailure,
    "Release {release} was withdrawn: {reason}. Its charge is spent.",
    "To publish this version under a new charge, add --new-charge.",
)
def release_withdrawn(release: str, reason: str) -> None:
    """The same request was published before, and the release was withdrawn."""


@problem(
    "GRM-304",
    SpentFailure,
    "Release {release} is {state}, and cannot become {new_state}.",
    "'gramercy budget' shows the state of every release.",
)
def state_not_allowed(release: str, state: str, new_state: str) -> None:
    """A release passes through its states once and in order, so that noise is never drawn twice.

    Another run may have finished the release, or recorded its charge as spent, in the meantime.
    """


@problem(
    "GRM-305",
    TermsChanged,
    "Data set '{dataset}' was registered with other terms: {terms}.",
    "Restore them in the contract: earlier guarantees depend on them. To change a budget, use "
    "'gramercy budget --raise' or '--lower' first. Use a new id only for a data set that shares no "
    "people with this one.",
)
def terms_changed(dataset: str, terms: tuple[str, ...]) -> None:
    """The contract differs from the one under which the data set was charged first."""


@problem(
    "GRM-306",
    TermsChanged,
    "The budget of '{dataset}' has delta={delta:g}, which must be less than 1/{count_key} = "
    "{limit:.3g}.",
    "Lower it with 'gramercy budget --lower'.",
)
def table_outgrew_delta(dataset: str, delta: float, count_key: str, limit: float) -> None:
    """The table has grown since the budget was set, and its delta is now too large for it."""


@problem("GRM-307", RequestError, "A reason is required.", "State it with --reason.")
def reason_missing() -> None:
    """The ledger records why a budget was changed or the ledger was moved."""


@problem(
    "GRM-308",
    RequestError,
    "--reason must be a single line of text.",
    "Remove line breaks and control characters.",
)
def reason_not_one_line() -> None:
    """A reason is stored permanently, and shown in terminals and on pages."""


@problem(
    "GRM-309",
    RequestError,
    "--raise must not lower epsilon or delta, and must change one of them: the budget of "
    "'{dataset}' is epsilon={epsilon:g}, delta={delta:g}.",
    "Give larger numbers, or use --lower.",
)
def budget_not_raised(dataset: str, epsilon: float, delta: float) -> None:
    """The new budget is the present one, or is smaller in epsilon or delta."""


@problem(
    "GRM-310",
    RequestError,
    "--lower must not raise epsilon or delta, and must change one of them: the budget of "
    "'{dataset}' is epsilon={epsilon:g}, delta={delta:g}.",
    "Give smaller numbers, or use --raise.",
)
def budget_not_lowered(dataset: str, epsilon: float, delta: float) -> None:
    """The new budget is the present one, or is larger in epsilon or delta."""


@problem(
    "GRM-311",
    RequestError,
    "delta must be less than 1/rows = {limit:.3g}.",
    "Choose a smaller delta: at this one, publishing a whole row would be allowed.",
)
def delta_too_large(limit: float) -> None:
    """A new budget has a delta of 1/n or more, which allows one of n rows to be published."""


@problem(
    "GRM-312",
    RequestError,
    "Data set '{dataset}' is not registered in {ledger}.",
    "Its first release registers it. Registered data sets, most similar first: {known}.",
)
def dataset_not_registered(dataset: str, ledger: str, known: tuple[str, ...]) -> None:
    """The ledger has no charge of a data set of this id."""


@problem(
    "GRM-313",
    BudgetRefused,
    "{dataset}: this release has epsilon={epsilon:g} at the budget's delta; the contract allows "
    "{limit:g} for a single one.",
    "Ask for a smaller epsilon, or raise 'budget: per_release' in the contract.",
)
def release_exceeds_limit(dataset: str, epsilon: float, limit: float) -> None:
    """A contract limits each of its releases, so that one request cannot spend a whole budget."""
