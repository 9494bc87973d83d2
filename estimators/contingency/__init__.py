"""Tables of counts from a noisy second moment: consistent counts, intervals and a test."""
