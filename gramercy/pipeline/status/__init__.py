"""What an operator has to know of a service, as facts with a verdict each."""
