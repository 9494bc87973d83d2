"""The steps of `gramercy.application` as sealed Prefect tasks, and what runs show of them."""
