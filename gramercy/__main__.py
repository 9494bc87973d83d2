"""``python -m gramercy``."""

from gramercy.cli import main

main()
