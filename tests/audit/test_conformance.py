"""Every registered mechanism answers every question. The statistical ones accuse an honest one with rate 1e-6."""

import pytest

from hubbub.audit.conformance import CHECKS
from hubbub.mechanisms.registry import SPECIMENS, Specimen


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_conforms(specimen: Specimen, check: str) -> None:
    assert CHECKS[check](specimen)


def test_names_are_not_shared() -> None:
    names = [specimen.name for specimen in SPECIMENS]
    assert len(names) == len(set(names)) > 0
