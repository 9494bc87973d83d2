"""Time and memory of a release: reading, summing, noise, noisy rows, a cluster, and the flow.

Each cell runs in its own process. Its contenders are timed in turn, round by round.
"""
