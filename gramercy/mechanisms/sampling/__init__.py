"""The only source of randomness: exact integer draws from the operating system's generator."""
