"""The steps of `gramercy.application` as private Prefect tasks, and the artifacts of runs."""

from gramercy.common.extras import publishing

with publishing():
    import prefect  # noqa: F401
