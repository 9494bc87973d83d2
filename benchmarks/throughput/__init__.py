"""Time and memory of publishing: reading, summing, noise, rows, a cluster, and the flow.

Each cell runs in its own process; its contenders take turns, round by round.
"""
