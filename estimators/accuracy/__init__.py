"""Accuracy of correlations: the noise in them, and the bias of the normalisation of rows."""
