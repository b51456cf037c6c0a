"""FROM and JOIN: one private table, and public tables beside it."""

from collections.abc import Callable

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned, TooHeavy
from hubbub.query.expression import Expression, columns_of
from hubbub.query.functions import call
from hubbub.query.ops import Filter, JoinKind, JoinPublic, Relation
from hubbub.query.scalars import alike
from hubbub.query.scope import Scope, Source

Pair = tuple[Expression, Expression]

_MOST_JOINS = 20


def joined(
    tree: exp.Select,
    scope: Scope,
    reading: Callable[[exp.Expr], Expression],
    looking: Callable[[exp.Expr], None],
) -> Callable[[], Relation]:
    """Read the clauses now; the relation is built later, when it is known which columns are used.

    ``looking`` is told which part is looked at, for the caret.
    """
    looking(tree.args["from_"].this)
    first = scope.add(tree.args["from_"].this)
    steps: list[tuple[Source, JoinKind, list[Pair], list[Expression]]] = []
    private = first if first.private else None
    joins = tree.args.get("joins") or []
    if len(joins) > _MOST_JOINS:
        raise TooHeavy(f"The question joins {len(joins):,} tables. Join at most {_MOST_JOINS}.")
    for node in joins:
        looking(node)
        kind = _kind(node)
        source = scope.add(node.this)
        if source.private and private is not None:
            raise NotOwned("Two private tables are joined. Joins of private tables on their unit are not answered yet.")
        if source.private and (kind is JoinKind.LEFT or steps):
            raise NotOwned(
                "A join keeps rows that belong to nobody. Name the private table first, then the public ones."
            )
        equal, others = _on(node, scope, source, reading)
        if source.private:
            private, source, equal = source, first, [(right, left) for left, right in equal]
        if kind is JoinKind.LEFT and others:
            raise NotAllowed("LEFT JOIN takes equalities between its two sides, and nothing else.")
        if kind is JoinKind.LEFT:
            scope.optional(source)
        steps.append((source, kind, equal, others))
    if private is None:
        raise NotOwned("All tables of the question are public. Name a private one, or read them without Hubbub.")
    owner = private

    def build() -> Relation:
        relation: Relation = scope.scan(owner)
        most = 1
        for source, kind, equal, others in steps:
            public = scope.scan(source)
            fanout = scope.catalogue.fanout(public, [right for _, right in equal])
            most *= max(1, fanout)
            if most > scope.catalogue.policy.limits.max_fanout:
                raise TooHeavy(f"One row would become up to {most:,} rows. Join on columns that are unique.")
            relation = JoinPublic(input=relation, public=public, kind=kind, keys=tuple(equal), most=fanout)
            for other in others:
                relation = Filter(input=relation, condition=other)
        return relation

    return build


def _kind(node: exp.Join) -> JoinKind:
    side, kind, method = ((node.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    if method or kind not in {"", "INNER", "OUTER"} or side not in {"", "LEFT"}:
        raise NotAllowed("Joins are INNER or LEFT, with ON or USING.")
    if not node.args.get("on") and not node.args.get("using"):
        raise NotAllowed("A join needs ON or USING with an equality between its two sides.")
    return JoinKind.LEFT if side == "LEFT" else JoinKind.INNER


def _on(
    node: exp.Join, scope: Scope, source: Source, reading: Callable[[exp.Expr], Expression]
) -> tuple[list[Pair], list[Expression]]:
    """Pairs that must be equal (other tables' side, this table's side), and conditions that are none."""
    if node.args.get("using"):
        pairs = [
            (exp.column(name.name, table=scope.sources[0].alias), exp.column(name.name, table=source.alias))
            for name in node.args["using"]
        ]
        return [_equal(reading(left), reading(right)) for left, right in pairs], []
    found: list[Pair] = []
    others: list[Expression] = []
    for part in node.args["on"].unnest().flatten() if isinstance(node.args["on"], exp.And) else [node.args["on"]]:
        condition = reading(part)
        sides = _sides(part, reading, source) if isinstance(part.unnest(), exp.EQ) else None
        if sides is None:
            others.append(condition)
        else:
            found.append(sides)
    if not found:
        raise NotAllowed("A join needs an equality between a column of one side and one of the other.")
    return found, others


def _sides(part: exp.Expr, reading: Callable[[exp.Expr], Expression], source: Source) -> Pair | None:
    equality = part.unnest()
    left, right = _equal(reading(equality.this), reading(equality.expression))
    here = [_only(side, source) for side in (left, right)]
    if here == [False, True]:
        return left, right
    if here == [True, False]:
        return right, left
    return None


def _equal(one: Expression, other: Expression) -> Pair:
    """Both sides in one type; a comparison that does not exist is refused here, and never tried on rows."""
    left, right = alike(one, other)
    call("eq", left, right)
    return left, right


def _only(side: Expression, source: Source) -> bool | None:
    """Whether an expression looks at this table alone, at others alone, or (None) at both or neither."""
    own = {name.partition(".")[0] == source.alias for name in columns_of(side)}
    return own.pop() if len(own) == 1 else None
