"""Processes that are killed, and disks that fail, at every point of a release."""
