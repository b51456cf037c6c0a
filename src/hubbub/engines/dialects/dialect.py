"""Facts of an engine's SQL for the printer, and the statements that it prints."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hubbub.engines.nodes.scalars import Beyond, Function, Guard, JoinForm, Operator, Prefix, Scalar, Storage, Tag
from hubbub.policy.kinds import Kind

Domain = Callable[[Sequence[Scalar], Beyond], Scalar]
"""Writes an operation on its arguments, constants among them as they are, and with what it is beyond what is finite."""


@dataclass(frozen=True, slots=True)
class KeyList:
    """The public values of one group, as a table that the statement joins with: each value with its place."""

    table: str
    type: str
    places: tuple[int, ...]
    values: tuple[str | None, ...]
    """As text, which the engine casts to the type."""


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One statement, the tables of public keys that it needs, and how many secret numbers of 64 bits it is given."""

    sql: str
    keys: tuple[KeyList, ...] = ()
    secrets: int = 0
    texts: tuple[str, ...] = ()
    """Constants that the text has parameters for, where the dialect keeps them out of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """An engine's SQL as data. A word that a table leaves out is one that the engine lacks: questions that need it are
    refused when they are prepared, before anything is paid."""

    name: str
    quote_name: Callable[[str], str]
    quote_text: Callable[[str], str]
    """Literals that nothing in them can end."""
    types: Mapping[Storage, str]
    operators: Mapping[Operator, str]
    prefixes: Mapping[Prefix, str]
    functions: Mapping[Function, str]
    """A name before the arguments; or, with braces in it, a form that has ``{0}`` for the first of them. Operators too
    may be such forms."""
    joins: Mapping[JoinForm, str]
    """Semi and anti joins that are left out are written with EXISTS."""
    join_same: str = ""
    """A form for ``same`` where nothing else joins two sides, for an engine that would compare all rows with all; and
    then a value of each group that is looked up among many is joined by it too."""
    cast: Callable[[str, str], str]
    safe_cast: Callable[[str, str], str]
    """A value and its type. The second never raises: where it fails it is NULL."""
    repeats: bool = False
    """Whether a safe cast writes its value more than once; then a value that is written once is not bound."""
    cast_condition: Callable[[str, str], str] | None = None
    """A condition as a number, where a plain cast does not make one of it."""
    with_once: Callable[[str, str, str], str]
    """A name, its query and what looks at it: rows are made once."""
    all_but: Callable[[Sequence[str]], str]
    """All columns but these."""
    lists_columns: bool = False
    """Whether the columns that stay are listed instead."""
    fence: str = ""
    """Put behind a query that computes long values, for an engine that would compute them at each use of them above."""
    read_value: Callable[[str, Kind], str]
    read_identity: Callable[[str, Kind, bool], str]
    """Columns of a source by their quoted names: ``ScanValue`` and ``ScanIdentity`` say what must hold."""
    hash: Callable[[Tag, str, Sequence[str]], str]
    """The keyed hash of a unit and content, under the first two parameters: ``KeyedHash`` says what must hold."""
    struct: Callable[[Mapping[str, str]], str]
    field: Callable[[str, str], str] | None = None
    """A field of a struct, where it is not read by its quoted name."""
    list: Callable[[Sequence[str]], str]
    files: Callable[[str, bool, bool], str] | None = None
    """The rows of Parquet files, by their variable; None where the engine reads no files."""
    parameter: Callable[[int], str] | None = None
    """A constant text by the place of its parameter; None where texts are written as literals."""
    read_stored: Callable[[str, Kind, str, bool], str] | None = None
    """A column of a ``StoredTable``, by its quoted name, its kind and its type there, as a value or as an identity."""
    light: int
    """How long an expression may be to be written twice rather than bound."""
    reference: Callable[[int], str]
    bind: Callable[[Mapping[int, str], str], str]
    """A bound value inside a body, and a body with its values around it, each computed once a row."""
    guards: Mapping[Function | Operator, Guard]
    """How functions and operators on reals are kept total; those that are not here are refused."""
    domains: Mapping[Function | Operator, Domain] = dataclasses.field(default_factory=dict)
    """For those that are guarded before: the operation on its arguments, of which it computes nothing that could
    fail."""

    def guard(self, called: Function | Operator) -> Guard:
        """Return how a function or an operator on reals is kept total."""
        return self.guards.get(called, "refuse")
