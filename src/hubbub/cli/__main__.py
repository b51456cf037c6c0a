"""``python -m hubbub.cli``."""

from hubbub.cli.app import main

main()
