"""``python -m benchmarks.solvers``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.solvers")
