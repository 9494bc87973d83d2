"""``python -m benchmarks.load``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.load")
