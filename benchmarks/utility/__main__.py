"""``python -m benchmarks.utility``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.utility")
