"""Facts hold for the bytes that are read: a read that rests on what was seen of files checks that these are still they.

Uniqueness that the owner's check has seen, and how many rows of a public table share a key, let a question skip
bounding. Both were seen of files in one state. Here that state is compared with the files before and after each read,
and with what the reading process had open.

Privacy:
    Claim: exact numbers that leave a read are bounded as the plan assumed, whatever was written to the files and when;
        and whether DataChanged is raised depends on the time stamps and locks of files alone.
    Proof: an aggregate that skips bounding is computed by its short statement only if all stamps on which facts rest
        hold before the read, and its result is used only if they hold after it, both of the paths and of the
        descriptors through which the files were read, logs of databases among them: the files that were read are then
        those of which the facts were seen (``policy.stamps``). Otherwise, and where a file could not be read through a
        descriptor, the result is thrown away unseen and the long
        statement is run, which bounds each unit to what the plan assumed and rests on no fact. Where the owner of a row
        is found by a path of keys no statement can do without their uniqueness, and DataChanged says so, before the
        result is looked at. A read that failed is repeated while the files move, and a failure that stays is one.
    Needs: ``policy.stamps``; an aggregate with ``single`` set differs from the one without only in what it skips, and
        totals with it set are bounded by a cap on their rows; of paths of keys, on a system that has no names for
        descriptors or mounts of one's own, that no path leads elsewhere and back within a read.
    Ref: SOUNDNESS 36.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hubbub.errors import DataChanged, EngineError
from hubbub.policy.stamps import NO_FILES, Stamp
from hubbub.query.ops import JoinPublic, Relation, Scan, below

T = TypeVar("T")

READS = 3
"""How often files that are being written to are read before a failure is held against the question."""


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """A value that was read, and the marks of the files that it was read from, as far as these were open."""

    result: T
    files: Stamp = NO_FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The files on which facts of a relation rest."""

    stamp: Stamp
    owners: bool
    """Whether the facts say who owns a row, and nothing can stand in for them."""

    def holds(self, read: Stamp | None = None) -> bool:
        """Return whether the files are as they were seen, and all of them are those that were read."""
        return self.stamp.holds() and (read is None or self.stamp.covers(read))

    def check(self, read: Stamp = NO_FILES) -> None:
        """Raise DataChanged where rows may have other owners than was seen."""
        if self.owners and not (self.stamp.holds() and self.stamp.agrees(read)):
            raise DataChanged(
                "The files were written to since their keys were seen to be unique, so nobody knows whose rows they "
                "hold. Ask again; if it is refused, let the owner run hubbub check, or open the data again."
            )


def files_behind(relation: Relation) -> Held:
    """Collect the files on which facts of a relation rest."""
    stamp, owners = NO_FILES, False
    if isinstance(relation, Scan):
        stamp, owners = relation.held, bool(relation.path)
    elif isinstance(relation, JoinPublic) and relation.held is not None:
        stamp = relation.held
    for part in below(relation):
        further = files_behind(part)
        stamp, owners = stamp | further.stamp, owners or further.owners
    return Held(stamp=stamp, owners=owners)


def read_held(
    held: Held, *, files: Callable[[], Stamp], short: Callable[[], Read[T]], long: Callable[[], Read[T]] | None = None
) -> T:
    """Read by the short statement while its facts hold, else by the long one, which needs none.

    ``files`` stamps what is read. ``long`` is None where the short statement rests on no fact but those on owners.
    """
    believed = True
    for _ in range(READS):
        held.check()
        brief = long is None or (believed and held.holds())
        before = files()
        found = _try(short if brief or long is None else long)
        read = NO_FILES if found is None else found.files
        held.check(read)
        if brief and long is not None and not held.holds(read):
            believed = found is None  # other files were read, or nobody knows which: not worth another try
            continue
        if found is not None:
            return found.result
        if files() == before:
            break
    raise EngineError


def _try(read: Callable[[], Read[T]]) -> Read[T] | None:
    """Run a read; None where it failed, which is told only when the stamps have been looked at."""
    try:
        return read()
    except EngineError:
        return None
