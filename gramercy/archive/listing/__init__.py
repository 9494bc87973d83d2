"""What an archive contains."""
