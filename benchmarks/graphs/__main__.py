"""``python -m benchmarks.graphs``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.graphs")
