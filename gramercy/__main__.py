"""``python -m gramercy``."""

from gramercy.cli.main import run

run()
