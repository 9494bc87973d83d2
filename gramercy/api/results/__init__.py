"""Results of analyses as analysts read them: labelled, printable, in a notebook, and with plots."""
