"""From raw tables to exact integers: read, repair, normalise, round, sum. Prefect is not used."""
