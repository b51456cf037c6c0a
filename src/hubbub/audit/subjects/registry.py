"""Everything that an audit can be pointed at by name; each subject is built when it is asked for."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType

from hubbub.audit.subject import Subject
from hubbub.audit.subjects.names import BUILDERS
from hubbub.errors import ParameterError
from hubbub.mechanisms.specimens.registry import SPECIMENS, find_specimen

_NEAR = 5
"""How many names an error suggests."""


def _of_specimen(name: str) -> Subject:
    from hubbub.audit.specimens import OfSpecimen

    return OfSpecimen(find_specimen(name))


@cache
def _build(builder: str) -> dict[str, Subject]:
    """Call ``module:function`` below this package; it returns one subject or several."""
    module, _, function = builder.partition(":")
    built = getattr(import_module(f"hubbub.audit.subjects.{module}"), function)()
    return {subject.name: subject for subject in (built if isinstance(built, list) else [built])}


def _pick(builder: str, name: str) -> Subject:
    return _build(builder)[name]


SUBJECTS: MappingProxyType[str, Callable[[], Subject]] = MappingProxyType(
    {name: cache(partial(_of_specimen, name)) for name in SPECIMENS}
    | {name: partial(_pick, builder, name) for builder, names in BUILDERS.items() for name in names}
)
"""Name → what builds the subject. First mechanisms by the names of their specimens; then filters, calibrations, the
gate, noise, strategies and estimators."""


def subject_of(name: str) -> Subject:
    """Return the subject of this name; the error for another one suggests names that are near."""
    if name in SUBJECTS:
        return SUBJECTS[name]()
    wanted = str(name).strip().casefold()
    folded = {known.casefold(): known for known in SUBJECTS}
    if wanted in folded:
        return SUBJECTS[folded[wanted]]()
    near = [folded[match] for match in get_close_matches(wanted, folded, n=_NEAR, cutoff=0.4)]
    near += [known for text, known in folded.items() if wanted and wanted in text and known not in near]
    some = ", ".join(near[:_NEAR]) if near else f"{len(SUBJECTS)} names, such as {', '.join(list(SUBJECTS)[:_NEAR])}"
    raise ParameterError("name", f"one of those that can be audited ({some})", name)
