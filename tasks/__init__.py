"""The steps of `gramercy.application` as sealed Prefect tasks, and what runs show of them."""

from gramercy.common.extras import publishing

with publishing():
    import prefect  # noqa: F401
