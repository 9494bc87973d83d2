"""The noise of a release, taken away, drawn and looked at: from public facts alone."""
