"""Measurements of Gramercy against others. Nothing here releases anything: noise is seeded."""
