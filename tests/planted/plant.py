"""What a planted bug is, and the few ways in which the gallery plants them."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from typing import Any
from unittest import mock

from hubbub.audit.report import Report
from hubbub.audit.specimens import OfSpecimen
from hubbub.audit.subject import Subject
from hubbub.audit.subjects.registry import subject_of
from hubbub.mechanisms.specimens.registry import build_specimens, find_specimen

Patch = Callable[[], AbstractContextManager[Any]]

build_specimens()  # they are built when asked for: here, before any bug could be calibrated into them


class Caught(StrEnum):
    """What an audit sees of a bug."""

    REPLAY = "by replay"
    MASSES = "by exact masses"
    LAW = "by draws that do not fit the stated law"
    COUNTING = "by counting"
    DISTANCE = "by exact distances"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One bug: a small wrong variant of the product's own code, in force for as long as a block lasts."""

    name: str
    about: str
    """What it stands for, in one sentence."""
    subject: Callable[[], Subject]
    """What a reviewer would point the audit at; made while the bug is there, as the product would be."""
    patch: Patch
    caught: Caught


def in_place(module: Any, what: str, wrong: Any) -> Patch:
    """A function of the product with its wrong variant instead."""
    return lambda: mock.patch.object(module, what, wrong)


def both(*patches: Patch) -> Patch:
    """One mistake that was made in two lines."""

    def planted() -> AbstractContextManager[Any]:
        with ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch())
            return stack.pop_all()

    return planted


def evidence(report: Report) -> Caught:
    """What a report accuses by."""
    found = report.counterexample
    assert found is not None
    if found.finding is not None:
        return Caught.COUNTING
    if report.subject.startswith("publish: "):
        return Caught.DISTANCE
    told = " ".join(found.sentences)
    if "the claim is broken" in told or report.subject.startswith(("filter: ", "calibration")):
        return Caught.MASSES
    return Caught.LAW if "do not fit the stated masses" in told else Caught.REPLAY


@cache
def named(name: str) -> Callable[[], Subject]:
    """What the audit knows by a name."""
    return partial(subject_of, name)


@cache
def specimen(name: str) -> Callable[[], Subject]:
    """A mechanism of the registry, calibrated anew: as it is when the product starts with the bug in it."""

    def made() -> Subject:
        found = find_specimen(name)
        return OfSpecimen(replace(found, mechanism=replace(found.mechanism)))  # type: ignore[type-var]

    return made
