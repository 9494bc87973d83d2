"""Linear regression from a noisy second moment."""
