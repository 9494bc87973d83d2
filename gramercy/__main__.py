"""``python -m gramercy``."""

from gramercy.cli.main import main

main()
