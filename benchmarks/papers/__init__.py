"""The experiments of the five papers: as published, and at an exact guarantee.

``python -m benchmarks.papers [sgz] [lw] [wx] [whx] [gpp] [claims]`` measures what `results/` lacks
and writes ``docs/results.md`` anew. No release, no ledger, no archive: noise is seeded.
"""
