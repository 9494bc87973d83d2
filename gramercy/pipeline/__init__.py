"""What the pipeline does, as ordinary functions: planning, publishing, verifying, auditing."""
