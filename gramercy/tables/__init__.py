"""Raw tables to exact integers: read, repair, normalise, round, sum. No Prefect here."""
