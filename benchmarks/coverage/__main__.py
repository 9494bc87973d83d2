"""``python -m benchmarks.coverage``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.coverage")
