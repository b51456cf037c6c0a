"""FROM and JOIN: private tables beside each other by their unit, and public tables beside private ones by any columns.

A row of the result belongs to the unit of its private side; where both sides are private, they share it. So a join may
keep rows without a match of a private side, and never those of a public one, which belong to nobody.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from hubbub.errors import NotAllowed, NotOwned, TooHeavy, UnknownName
from hubbub.policy.kinds import Kind
from hubbub.query.check.prune import prune
from hubbub.query.check.work import join_own, within_fanout
from hubbub.query.expression import Expression, columns_of
from hubbub.query.functions import call
from hubbub.query.ops import Filter, JoinKind, JoinPublic, Relation
from hubbub.query.read.scalars import alike
from hubbub.query.read.scope import Catalogue, NamedSource, Scope, prefer_own

Pair = tuple[Expression, Expression]
Keeps = tuple[bool, bool]
"""Whether rows of the left, and of the right side stay where they have no match."""

MOST_JOINS = 20
_SIDES: dict[str, Keeps] = {
    "": (False, False),
    "LEFT": (True, False),
    "RIGHT": (False, True),
    "FULL": (True, True),
}
_NOBODY = (
    "The join keeps rows of a public table that have no match, and they belong to nobody. Keep rows of the private "
    "table only: private LEFT JOIN public."
)


@dataclass(frozen=True, slots=True)
class Joined:
    """The rows of a FROM clause."""

    relation: Relation
    unit: Kind | None
    said: frozenset[int]
    """Conditions of WHERE that were taken for a join, by their identity."""


@dataclass(frozen=True, slots=True)
class On:
    """The comparisons of a join."""

    equal: list[Pair]
    """Over the left side, over the right one."""
    others: list[tuple[bool | None, Expression]]
    """Further conditions: on the right side alone, on the left alone (False), or (None) on both or neither."""
    said: frozenset[int] = frozenset()


class Joiner:
    """Reads one FROM clause. ``looking`` is told which part is looked at, for the caret."""

    def __init__(
        self,
        scope: Scope,
        catalogue: Catalogue,
        *,
        source: Callable[[exp.Expr], NamedSource],
        reading: Callable[[exp.Expr], Expression],
        looking: Callable[[exp.Expr], None],
    ) -> None:
        self._scope, self._catalogue = scope, catalogue
        self._reading, self._looking = reading, looking
        self._making = source
        self._made: dict[int, NamedSource] = {}

    def join(self, tree: exp.Select, conditions: Sequence[exp.Expr]) -> Joined:
        """All tables, in the order in which they are named; a comma waits for the tables that WHERE ties it to."""
        joins: list[exp.Join] = list(tree.args.get("joins") or [])
        if len(joins) > MOST_JOINS:
            raise TooHeavy(f"The question joins {len(joins):,} tables. Join at most {MOST_JOINS}.")
        if any(_by_comma(one) for one in joins) and any(_sides_kept(one)[1] for one in joins if not _by_comma(one)):
            raise NotAllowed("A comma stands beside a RIGHT or FULL JOIN. Write all tables with JOIN and ON.")
        self._looking(tree.args["from_"].this)
        first = self._scope.add(self._source(tree.args["from_"].this))
        self._scope.join([], first)
        found = Joined(first.relation, first.unit, frozenset())
        while joins:
            tied = next((one for one in joins if not _by_comma(one) or self._ties(one, conditions)), None)
            if tied is None:
                self._looking(joins[0])
                raise NotAllowed("A join needs an equality between its two sides: write it behind ON, or in WHERE.")
            joins.remove(tied)
            found = self._join(found, tied, conditions)
        return found

    def _source(self, node: exp.Expr) -> NamedSource:
        """Read once, also if it has to wait."""
        if id(node) not in self._made:
            self._made[id(node)] = self._making(node)
        return self._made[id(node)]

    def _ties(self, node: exp.Join, conditions: Sequence[exp.Expr]) -> bool:
        """Return whether WHERE compares a table behind a comma with those that are there."""
        self._looking(node)
        self._scope.add(self._source(node.this))
        try:
            return bool(self._split_condition(conditions, self._scope.sources[-1], quiet=True).equal)
        finally:
            self._scope.sources.pop()

    def _join(self, so_far: Joined, node: exp.Join, conditions: Sequence[exp.Expr]) -> Joined:
        self._looking(node)
        keeps = _sides_kept(node)
        left = list(self._scope.sources)
        right = self._scope.add(self._source(node.this))
        on = self._on(node, left, right, conditions)
        self._looking(node)
        one, other = so_far.relation, right.relation
        for place, condition in on.others if any(keeps) else []:
            if place is None or all(keeps) or (keeps[1] if place else keeps[0]):
                raise NotAllowed(
                    "An outer join takes equalities between its two sides, and conditions on the side that it does not "
                    "keep. Put others into WHERE."
                )
            if place:
                other = Filter(input=other, condition=condition)
            else:
                one = Filter(input=one, condition=condition)
        relation, unit = self._beside((one, so_far.unit), (other, right.unit), keeps, on.equal)
        for _, condition in on.others if not any(keeps) else []:
            relation = Filter(input=relation, condition=condition)
        self._scope.join(left, right, keeps=keeps)
        self._merge(node, left, right, keeps)
        return Joined(relation, unit, so_far.said | on.said)

    def _beside(
        self,
        left: tuple[Relation, Kind | None],
        right: tuple[Relation, Kind | None],
        keeps: Keeps,
        equal: list[Pair],
    ) -> tuple[Relation, Kind | None]:
        (one, mine), (other, theirs) = left, right
        swapped = [(second, first) for first, second in equal]
        if mine is not None and theirs is not None:
            if mine.type is not theirs.type:
                raise NotOwned(f"One table is about units that are {mine.type}, the other {theirs.type}. Ask apart.")
            keys = self._off_the_unit(equal)
            kind = JoinKind.FULL if all(keeps) else JoinKind.LEFT if any(keeps) else JoinKind.INNER
            policy = self._catalogue.policy
            if keeps == (False, True):
                turned = tuple((second, first) for first, second in keys)
                return join_own(other, one, kind, turned, policy), mine
            return join_own(one, other, kind, tuple(keys), policy), mine
        if all(keeps):
            raise NotOwned(_NOBODY)
        if theirs is None and not keeps[1]:
            return self._with_public(one, other, keeps[0], equal), mine
        if mine is None and not keeps[0]:
            return self._with_public(other, one, keeps[1], swapped), theirs
        raise NotOwned(_NOBODY)

    def _off_the_unit(self, equal: list[Pair]) -> list[Pair]:
        """Return comparisons besides the unit's; a unit that may be missing is compared too, and then equals nothing.

        A key by which rows find their unit will do: its equal values are of one unit, which the operation compares too.
        """
        units = [pair for pair in equal if self._scope.names_unit(pair[0]) and self._scope.names_unit(pair[1])]
        if not units and not any(self._scope.leads(one) & self._scope.leads(other) for one, other in equal):
            raise NotOwned(
                "Private tables are joined by something else than their unit. Compare the unit's column of both behind "
                "ON, as it is, or the key that leads to it."
            )
        whole = [pair for pair in units if self._scope.is_unit(pair[0]) and not self._scope.may_lack(pair[1])]
        return [pair for pair in equal if pair not in whole]

    def _with_public(self, rows: Relation, public: Relation, keep: bool, keys: list[Pair]) -> Relation:
        wanted = [right for _, right in keys]
        narrow = prune(public, frozenset[str]().union(*(columns_of(one) for one in wanted)))
        fanout = self._catalogue.fanout(narrow, wanted)
        kind = JoinKind.LEFT if keep else JoinKind.INNER
        join = JoinPublic(input=rows, public=public, kind=kind, keys=tuple(keys), most=fanout.most, held=fanout.held)
        return within_fanout(join, self._catalogue.policy)

    def _on(
        self, node: exp.Join, left: Sequence[NamedSource], right: NamedSource, conditions: Sequence[exp.Expr]
    ) -> On:
        if node.args.get("using"):
            pairs = []
            for name in node.args["using"]:
                mine = self._reading(self._find_unqualified(name, left))
                pairs.append(equal(mine, self._reading(exp.column(name.copy(), table=right.alias, quoted=True))))
            return On(pairs, [])
        parts = conditions if _by_comma(node) else conjunct_nodes(node.args["on"])
        found = self._split_condition(parts, right, quiet=_by_comma(node))
        if not found.equal:
            raise NotAllowed("A join needs an equality between a column of one side and one of the other.")
        return found

    def _find_unqualified(self, name: exp.Expr, left: Sequence[NamedSource]) -> exp.Column:
        """A column of the left side by its name alone."""
        merged = self._scope.merged_columns(name.name)
        if merged:
            return exp.column(name.copy())
        meant = prefer_own([named for one in left for named in one.columns if named.name.lower() == name.name.lower()])
        owners = [one.alias for one in left if any(named in one.columns for named in meant)]
        if len(owners) > 1:
            raise UnknownName(f"Several tables have a column {name.name!r}. Say which behind ON.")
        return exp.column(name.copy(), table=owners[0] if owners else left[0].alias, quoted=True)

    def _split_condition(self, parts: Sequence[exp.Expr], right: NamedSource, *, quiet: bool) -> On:
        """Equalities between the sides, and the rest; ``quiet``: what is about other tables is passed over."""
        equal: list[Pair] = []
        others: list[tuple[bool | None, Expression]] = []
        said: set[int] = set()
        for part in parts:
            if quiet and not isinstance(part.unnest(), exp.EQ):
                continue
            try:
                sides = self._sides(part, right)
                if sides is not None:
                    equal.append(sides)
                    said.add(id(part))
                elif not quiet:
                    condition = self._reading(part)
                    others.append((_only(condition, right), condition))
            except UnknownName:
                if not quiet:
                    raise
        return On(equal, others, frozenset(said))

    def _sides(self, part: exp.Expr, right: NamedSource) -> Pair | None:
        equality = part.unnest()
        if not isinstance(equality, exp.EQ):
            return None
        self._reading(part)
        one, other = equal(self._reading(equality.this), self._reading(equality.expression))
        match _only(one, right), _only(other, right):
            case (False, True):
                return one, other
            case (True, False):
                return other, one
        return None

    def _merge(self, node: exp.Join, left: Sequence[NamedSource], right: NamedSource, keeps: Keeps) -> None:
        """After USING, the name alone means the side that is never missing, or the first of both that is there."""
        for name in node.args.get("using") or []:
            mine = self._scope.merged_columns(name.name) or (self._find_unqualified(name, left),)
            theirs = (exp.column(name.copy(), table=right.alias, quoted=True),)
            match keeps:
                case (True, True):
                    self._scope.merge(name.name, *mine, *theirs)
                case (False, True):
                    self._scope.merge(name.name, *theirs)
                case _:
                    self._scope.merge(name.name, *mine)


def conjunct_nodes(node: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that all must hold."""
    if node is None:
        return []
    bare = node.unnest()
    if isinstance(bare, exp.And):
        return [part for one in bare.flatten() for part in conjunct_nodes(one)]
    return [node]


def _by_comma(node: exp.Join) -> bool:
    plain = not any(node.args.get(name) for name in ("side", "method", "on", "using"))
    return plain and (node.args.get("kind") or "").upper() in {"", "CROSS"}


def _sides_kept(node: exp.Join) -> Keeps:
    side, kind, method = ((node.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    known = {"", "INNER", "OUTER"} | ({"CROSS"} if _by_comma(node) else set())
    if method or kind not in known or side not in _SIDES:
        raise NotAllowed("Joins are INNER, LEFT, RIGHT or FULL, with ON or USING.")
    if not _by_comma(node) and not node.args.get("on") and not node.args.get("using"):
        raise NotAllowed("A join needs ON or USING with an equality between its two sides.")
    return _SIDES[side]


def equal(one: Expression, other: Expression) -> Pair:
    """Both sides in one type; a comparison that does not exist is refused here, and never tried on rows."""
    left, right = alike(one, other)
    call("eq", left, right)
    return left, right


def _only(side: Expression, source: NamedSource) -> bool | None:
    """Return whether an expression looks at this table alone, at others alone, or (None) at both or neither."""
    names = {named.column.name for named in source.columns}
    own = {name in names for name in columns_of(side)}
    return own.pop() if len(own) == 1 else None
