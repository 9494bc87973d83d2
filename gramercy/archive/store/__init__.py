"""Where an archive is stored, and how it is opened."""
