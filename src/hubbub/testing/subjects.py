"""Everything that an audit can be pointed at by name."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial

from hubbub.audit.specimens import OfSpecimen
from hubbub.audit.subject import Subject
from hubbub.errors import ParameterError
from hubbub.mechanisms.registry import SPECIMENS
from hubbub.testing.accounting import filters
from hubbub.testing.calibration import Calibration
from hubbub.testing.fresh import noises
from hubbub.testing.gate import Gate
from hubbub.testing.learners import learners
from hubbub.testing.maps import maps
from hubbub.testing.strategies import strategies

_NEAR = 5


def _all() -> list[Subject]:
    own: list[Subject] = [Calibration(), Gate(), *noises(), *strategies(), *maps(), *learners()]
    return [*map(OfSpecimen, SPECIMENS), *filters(), *own]


def _held(subject: Subject) -> Subject:
    return subject


SUBJECTS: dict[str, Callable[[], Subject]] = {one.name: partial(_held, one) for one in _all()}
"""Mechanisms by the names of the registry; then filters, calibrations, the gate, noise, strategies and estimators."""


def subject_of(name: str) -> Subject:
    """The subject of this name; the error for another one says which are near."""
    if name in SUBJECTS:
        return SUBJECTS[name]()
    wanted = str(name).strip().casefold()
    folded = {known.casefold(): known for known in SUBJECTS}
    if wanted in folded:
        return SUBJECTS[folded[wanted]]()
    near = [folded[one] for one in get_close_matches(wanted, folded, n=_NEAR, cutoff=0.4)]
    near += [known for one, known in folded.items() if wanted and wanted in one and known not in near]
    told = ", ".join(near[:_NEAR]) if near else f"{len(SUBJECTS)} names, such as {', '.join(list(SUBJECTS)[:_NEAR])}"
    raise ParameterError("name", f"one of those that can be audited ({told})", name)
