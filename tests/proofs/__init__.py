"""The parts of proofs that are computed, each as a module that can be run again."""
