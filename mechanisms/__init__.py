"""Noise and its exact guarantee: one mechanism a file, and one line each in the registry."""

from collections.abc import Mapping

from mechanisms.gaussian import Gaussian
from mechanisms.mechanism import Mechanism

registry: Mapping[str, type[Mechanism]] = {each.name: each for each in (Gaussian,)}

__all__ = ["Mechanism", "registry"]
