"""The attack lab: what a planned or a past release gives away. It shares no code with what it attacks."""

from hubbub.attack.finding import Finding
from hubbub.attack.suppression import Published, hcup, suppression

__all__ = ["Finding", "Published", "hcup", "suppression"]
