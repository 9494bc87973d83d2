"""What publishing costs: reading, summing, noise, rows, memory, a cluster, and the flow around it.

Every cell is measured in a process of its own, its contenders one after the other, round by round.
"""
