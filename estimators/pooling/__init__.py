"""Pooling the evidence of several releases: common units, weights, and the law of their noise."""
