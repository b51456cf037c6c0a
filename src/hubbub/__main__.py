"""``python -m hubbub``."""

from hubbub.cli.app import main

main()
