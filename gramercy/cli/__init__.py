"""The ``gramercy`` command: a module for each command, and in `output` what they print."""
