"""What a steward schedules: the order of steps, nothing else."""

from gramercy.common.extras import publishing

with publishing():
    import prefect  # noqa: F401
