"""``python -m benchmarks.throughput``."""

from benchmarks.throughput.run import main

if __name__ == "__main__":
    main()
