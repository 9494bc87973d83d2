"""The steps of a release. Thin: the work is in the rooms below."""
