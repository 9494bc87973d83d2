"""Principal components of a noisy second moment: eigenvalues, shares and loadings with errors."""
