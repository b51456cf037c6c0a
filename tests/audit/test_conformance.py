"""Every registered mechanism answers every question. The statistical ones accuse an honest one with rate 1e-6."""

from typing import Any

import pytest

from hubbub.audit import conformance
from hubbub.audit.conformance import CHECKS
from hubbub.audit.exact import Laws
from hubbub.mechanisms.specimens.registry import SPECIMENS, build_specimens
from hubbub.mechanisms.specimens.specimen import Specimen

_laws, KNOWN = conformance._laws, dict[tuple[int, int], Laws]()


@pytest.fixture(autouse=True)
def _exact_masses_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five of the six questions ask for the same ones, of specimens that do not change."""

    def known(specimen: Specimen, mechanism: Any) -> Laws:
        of = id(specimen), id(mechanism)
        if of not in KNOWN:
            KNOWN[of] = _laws(specimen, mechanism)
        return KNOWN[of]

    monkeypatch.setattr(conformance, "_laws", known)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("specimen", build_specimens(), ids=lambda specimen: specimen.name)
def test_conforms(specimen: Specimen, check: str) -> None:
    assert CHECKS[check](specimen)


def test_names_are_not_shared() -> None:
    names = [specimen.name for specimen in build_specimens()]
    assert tuple(names) == SPECIMENS
    assert len(names) == len(set(names)) > 0
