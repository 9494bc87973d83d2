"""The bundles of releases, estimates and reports: written, read, limited."""
