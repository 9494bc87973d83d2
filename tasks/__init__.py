"""The steps of `gramercy.pipeline` as private Prefect tasks, and the artifacts of runs."""

from gramercy.common.extras import publishing

with publishing():
    import prefect  # noqa: F401
