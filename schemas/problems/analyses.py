"""Regression, components, tables, synthetic rows and pooling: codes 550 to 599."""

from __future__ import annotations
