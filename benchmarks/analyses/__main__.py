"""``python -m benchmarks.analyses``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.analyses")
