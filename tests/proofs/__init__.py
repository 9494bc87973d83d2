"""The computed parts of proofs, as modules that can be rerun."""
