"""IN and EXISTS with a subquery, as conditions of WHERE: rows that have a partner, or have none.

Privacy:
    Claim: which rows of a unit stay depends on its own rows and on public tables alone.
    Proof: the subquery is public, or it is compared by the unit of both sides, and a partner is a row of the same
        unit; or by a key that leads to the unit, whose equal values are of one unit. Anything else would let one
        person's row switch everybody's, and is refused.
    Needs: columns that are said to name the unit do (query.scope).
    Ref: SOUNDNESS, ruling 1.
"""

from collections.abc import Sequence

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned
from hubbub.query.functions import call
from hubbub.query.ops import Filter, Match, Relation
from hubbub.query.read.joins import equal
from hubbub.query.read.relation import Derived, Reader, SourceRows, Tie, Views
from hubbub.query.read.scalars import read

_TIED = (
    "The subquery looks at rows of people, and is not tied to the unit of the row. Compare the unit's columns of both, "
    "as they are: unit IN (SELECT unit FROM …), or WHERE inner.unit = outer.unit."
)


def inside(node: exp.Expr) -> exp.Expr | None:
    """IN or EXISTS with a subquery, also denied; None for any other condition."""
    bare = node.unnest()
    while isinstance(bare, exp.Not):
        bare = bare.this.unnest()
    found = isinstance(bare, exp.Exists) or (isinstance(bare, exp.In) and bare.args.get("query") is not None)
    return bare if found else None


def match_rows(reader: Reader, node: exp.Expr, rows: SourceRows, views: Views) -> Relation:
    """The rows for which it holds."""
    without, bare = False, node.unnest()
    while isinstance(bare, exp.Not):
        without, bare = not without, bare.this.unnest()
    if isinstance(bare, exp.Exists):
        return _exists(reader, bare, rows, views, without=without)
    return _in(reader, bare, rows, views, without=without)


def _exists(reader: Reader, node: exp.Exists, rows: SourceRows, views: Views, *, without: bool) -> Relation:
    query = node.this.unnest() if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(query, exp.Select):
        raise NotAllowed("EXISTS takes a SELECT.")
    for clause in ("group", "having", "qualify", "distinct", "limit", "offset"):
        if query.args.get(clause):
            reader.look(query.args[clause] if isinstance(query.args[clause], exp.Expr) else query)
            raise NotAllowed("EXISTS asks whether there is a row: its subquery has FROM and WHERE alone.")
    if any(isinstance(part, exp.AggFunc) for one in query.expressions for part in one.walk()):
        raise NotAllowed("EXISTS asks whether there is a row, and an aggregate always has one. SELECT 1 in it.")
    found = reader.derive(query, views, outer=rows.scope)
    reader.look(node)
    return _match(rows, found, found.correlated, without=without)


def _in(reader: Reader, node: exp.Expr, rows: SourceRows, views: Views, *, without: bool) -> Relation:
    if any(value for name, value in node.args.items() if name not in {"this", "query"}):
        raise NotAllowed("IN takes one subquery: x IN (SELECT …).")
    tested = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    mine = [read(one, rows.names) for one in tested]
    found = reader.derive(node.args["query"], views, outer=rows.scope)
    reader.look(node)
    if len(mine) != len(found.outputs):
        raise NotAllowed(f"{len(mine)} values are looked for among {len(found.outputs)} columns. SELECT as many.")
    ties = []
    for left, one in zip(mine, found.outputs, strict=True):
        outer, inner = equal(left, one.expression)
        unit = one.facts.unit and inner == one.expression
        leads = one.facts.leads if inner == one.expression else frozenset[tuple[str, str]]()
        ties.append(Tie(outer=outer, inner=inner, unit=unit, whole=unit and not one.facts.optional, leads=leads))
    relation = rows.relation
    for tie in ties if without else []:
        relation = _all_there(tie, rows, found, relation)
    kept = SourceRows(rows.scope, rows.names, relation, rows.unit)
    return _match(kept, found, [*found.correlated, *ties], without=without)


def _all_there(tie: Tie, rows: SourceRows, found: Derived, relation: Relation) -> Relation:
    """NOT IN is neither true nor false beside a missing value; units are never missing."""
    if tie.inner.kind.nullable and not tie.whole and call("not", call("is_null", tie.inner)) not in found.conditions:
        raise NotAllowed(
            "NOT IN keeps nothing if a value of the list is missing. Say NOT EXISTS, or WHERE … IS NOT NULL in the "
            "subquery."
        )
    if tie.outer.kind.nullable and not rows.scope.is_unit(tie.outer):
        return Filter(input=relation, condition=call("not", call("is_null", tie.outer)))
    return relation


def _match(rows: SourceRows, found: Derived, ties: Sequence[Tie], *, without: bool) -> Relation:
    """A partner has equal values, and is of the same unit if it belongs to one."""
    if not ties and found.unit is None:
        raise NotAllowed("The subquery says nothing about the row. Compare a column of it with one of the question's.")
    if found.unit is not None:
        if rows.unit is None or rows.unit.type is not found.unit.type:
            raise NotOwned(_TIED)
        tied = [tie for tie in ties if tie.unit and rows.scope.names_unit(tie.outer)]
        if not tied and not any(tie.leads & rows.scope.leads(tie.outer) for tie in ties):
            raise NotOwned(_TIED)
        ties = [tie for tie in ties if tie not in tied or not tie.whole or not rows.scope.is_unit(tie.outer)]
    keys = tuple((tie.outer, tie.inner) for tie in ties)
    return Match(input=rows.relation, other=found.relation, keys=keys, without=without)
