"""``python -m benchmarks.statistics``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.statistics")
