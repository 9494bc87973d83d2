"""The experiments of five papers, as published and at an exact guarantee.

``python -m benchmarks papers [sgz] [lw] [wx] [whx] [gpp] [claims]`` measures the cells missing
in `results/` and writes ``docs/results.md`` and ``docs/results/``. Noise is seeded.
"""
