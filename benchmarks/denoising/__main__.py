"""``python -m benchmarks.denoising``."""

from benchmarks.measuring import command

if __name__ == "__main__":
    command("benchmarks.denoising")
