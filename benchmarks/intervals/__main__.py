"""``python -m benchmarks.intervals``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.intervals")
