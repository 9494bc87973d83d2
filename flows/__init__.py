"""Prefect flows: the order of the steps of a release, an estimate, a report and an audit."""

from gramercy.common.extras import publishing

with publishing():
    import prefect  # noqa: F401
