"""The command ``hubbub``."""

from hubbub.cli.app import main

__all__ = ["main"]
