"""The ``gramercy`` command: one module per command; `output` prints the results."""
