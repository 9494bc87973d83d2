"""Analyses of a release: what its matrix holds beyond correlations, at no further privacy cost."""

from __future__ import annotations

from gramercy.api.matrices import ReleaseMatrices


class ReleaseAnalyses(ReleaseMatrices):
    """Regression, components, tables and synthetic rows, each from the published numbers alone."""
