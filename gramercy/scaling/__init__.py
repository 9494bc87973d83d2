"""Constants from published counts: bins, centres and scales, clipping radius, budget shares.

Pure functions of public facts and of noisy counts that are published, so that anyone can recompute
the constants of a release. Sums are integers or exactly rounded, and logarithms are made of basic
operations: the same counts give the same constants on every machine.
"""
