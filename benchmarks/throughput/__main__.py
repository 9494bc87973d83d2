"""``python -m benchmarks.throughput``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.throughput", one_thread=False)
