"""Processes that die, and disks that fail, at every point of a release."""
