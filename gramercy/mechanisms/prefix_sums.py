"""Prefix sums, where mechanisms look for them; see `gramercy.common.prefix_sums`."""

from __future__ import annotations

from gramercy.common.prefix_sums import UNIT, PrefixSums

__all__ = ["UNIT", "PrefixSums"]
