"""The only randomness: integers drawn exactly, from the operating system's generator."""
