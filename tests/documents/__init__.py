"""The documents agree with the code, and their examples run."""
