"""PostgreSQL's dialect, from version 14 on.

What is written here runs under ``search_path = pg_catalog``, where nobody's overloaded operator or function is found.
Reals raise where they overflow and where they come too close to zero, so guards come before
(``postgres_totals``). Texts are parameters, and compared by their bytes; a value that is looked at often is a column
of a subquery, which is computed once a row.

Secret numbers are settings of the transaction, which the server draws itself (``hubbub.engines.postgres.secrets``): a
parameter would stand in the server's log, and as a constant in plans that auto_explain prints.

Privacy:
    Claim: ``hash`` depends on its tag, unit and content and on both secret numbers, and on nothing else; equal values
        have equal hashes, and it has a value for missing content too.
    Proof: a record is hashed by its fields in order, with the seed in each of them, and texts by their bytes, since the
        collation of all of them is "C". The second secret is the seed of another hash over the first: without it the
        hashes of a unit's contents would be those of another unit, moved by a constant, and prefer the same content.
    Needs: ``alike`` for zeros of both signs, which these hashes take for one anyway; ties are broken by content.
    Ref: SOUNDNESS 6, 37, 52.
"""

from collections.abc import Mapping, Sequence

from hubbub.engines.dialects.dialect import Dialect
from hubbub.engines.dialects.postgres_totals import DOMAINS
from hubbub.engines.nodes.scalars import Storage, Tag
from hubbub.engines.postgres.letters import LOWER, UPPER
from hubbub.engines.postgres.scan import quote_name, quote_text, read_stored
from hubbub.errors import EngineError
from hubbub.policy.kinds import Kind

TYPES: Mapping[Storage, str] = {
    "boolean": "boolean",
    "int32": "integer",
    "uint32": "bigint",
    "int64": "bigint",
    "uint64": "bigint",
    "int128": "numeric",
    "real": "double precision",
    "text": "text",
    "date": "date",
    "timestamp": "timestamp",
}
"""Half a hash may be below zero here, and all of one too: they are only ordered, and taken apart by their bits."""

_BOUND = quote_name("bound")
_ENDS = {"bigint": ("(-9223372036854775808)", "9223372036854775808"), "integer": ("(-2147483648)", "2147483647.5")}
"""From the first on, and below the second: what is within becomes a whole number without an error."""


def name_secret(place: int) -> str:
    """Name the setting of a secret number, by its place from 1 on."""
    return f"hubbub.key{place:d}"


def _secret(place: int) -> str:
    """Look it up once for the statement, not once a row."""
    return f"(SELECT CAST(pg_catalog.current_setting('{name_secret(place)}') AS bigint))"


def _hash(tag: Tag, unit: str, content: Sequence[str]) -> str:
    record = f"ROW({', '.join([f'{tag:d}', unit, *content])})"
    mixed = f"pg_catalog.hash_record_extended({record}, {_secret(1)})"
    mixed = f"pg_catalog.hashint8extended({mixed}, {_secret(2)})"
    return f"({mixed} & 9223372036854775807)" if tag is Tag.BLOCK else mixed


def _cast(value: str, type_: str) -> str:
    return f"CAST({value} AS {type_})"


def _cast_condition(value: str, type_: str) -> str:
    return value if type_ == "boolean" else f"CAST(CAST({value} AS integer) AS {type_})"


def _safe_cast(value: str, type_: str) -> str:
    if type_ not in _ENDS:
        return _cast(value, type_)
    low, high = _ENDS[type_]
    return f"CASE WHEN {value} >= {low} AND {value} < {high} THEN CAST({value} AS {type_}) END"


def _with_once(called: str, query: str, then: str) -> str:
    return f"WITH {called} AS MATERIALIZED ({query}) {then}"


def _no_star(columns: Sequence[str]) -> str:
    raise EngineError  # columns are listed


def _read_nothing(column: str, kind: Kind, replaced: bool = False) -> str:
    raise EngineError  # every column is one of a stored table


def _struct(fields: Mapping[str, str]) -> str:
    """An array of texts, which is equal where all of them are: a record without a type of its own cannot be hashed,
    and its fields are not always found. Conditions, whole numbers, dates, moments and texts have one text each.
    """
    texts = {_place(field): f'CAST({value} AS text) COLLATE "C"' for field, value in fields.items()}
    nothing = "CAST(NULL AS text)"  # in the place of a field that others of the statement have
    return f"ARRAY[{', '.join([texts.get(place, nothing) for place in range(1, max(texts) + 1)])}]"


def _field(struct: str, field: str) -> str:
    return f"({struct})[{_place(field):d}]"


def _place(field: str) -> int:
    return int(field.removeprefix("k")) + 1


def _list(items: Sequence[str]) -> str:
    return f"ARRAY[{', '.join(items)}]"


def _parameter(place: int) -> str:
    return f'(CAST(${place:d} AS text) COLLATE "C")'


def _reference(place: int) -> str:
    return f'{_BOUND}."a{place:d}"'


def _bind(values: Mapping[int, str], body: str) -> str:
    """Compute values in a subquery that the planner may not take apart, which would compute them at every use."""
    made = ", ".join(f'{value} AS "a{place:d}"' for place, value in values.items())
    return f"(SELECT {body} FROM (SELECT {made} OFFSET 0) AS {_BOUND})"


def _part(called: str) -> str:
    return f"EXTRACT({called} FROM {{0}})"


def _start(span: str) -> str:
    return f"CAST(pg_catalog.date_trunc('{span}', CAST({{0}} AS timestamp)) AS date)"


def _change_case(called: str, letters: tuple[str, str]) -> str:
    """Letter by letter, and fast where all of them are ASCII."""
    before, after = map(quote_text, letters)
    short = f'pg_catalog.{called}({{0}} COLLATE "C")'
    long = f"pg_catalog.translate({{0}}, {before}, {after})"
    return f"CASE WHEN pg_catalog.octet_length({{0}}) = pg_catalog.length({{0}}) THEN {short} ELSE {long} END"


def _at_most(place: int) -> str:
    """A whole number from 0 on as an argument of 32 bits."""
    return f"CAST(GREATEST(LEAST({{{place:d}}}, 2147483647), 0) AS integer)"


POSTGRES = Dialect(
    name="PostgreSQL",
    quote_name=quote_name,
    quote_text=quote_text,
    types=TYPES,
    operators={
        "and": "AND",
        "or": "OR",
        "same": "IS NOT DISTINCT FROM",
        "like": "({0} LIKE {1} ESCAPE '')",
        "=": "=",
        "<>": "<>",
        "<": "<",
        "<=": "<=",
        ">": ">",
        ">=": ">=",
        "+": "+",
        "-": "-",
        "*": "*",
        "/": "/",
        "//": "pg_catalog.div(CAST({0} AS numeric), CAST({1} AS numeric))",
        "%": "%",
        "&": "&",
        "|": "|",
        "<<": "<<",
        ">>": ">>",
    },
    prefixes={"not": "NOT", "-": "-"},
    functions={
        "abs": "pg_catalog.abs",
        "all_true": "pg_catalog.bool_and",
        "any_true": "pg_catalog.bool_or",
        "asinh": "pg_catalog.asinh",
        "ceil": "pg_catalog.ceil",
        "coalesce": "COALESCE",
        "count": "pg_catalog.count",
        "day": _part("DAY"),
        "days_between": "CAST(({0} - {1}) AS bigint)",
        "dense_rank": "pg_catalog.dense_rank",
        "exp": "pg_catalog.exp",
        "floor": "pg_catalog.floor",
        "greatest": "GREATEST",
        "hour": _part("HOUR"),
        "is_finite": "(pg_catalog.abs({0}) < CAST('Infinity' AS double precision))",
        "item": f"({{0}})[{_at_most(1)}]",
        "lag": f"pg_catalog.lag({{0}}, {_at_most(1)})",
        "lead": "pg_catalog.lead({all})",
        "least": "LEAST",
        "length": "pg_catalog.length",
        "list": "pg_catalog.array_agg",
        "ln": "pg_catalog.ln",
        "log2": "(pg_catalog.ln({0}) / CAST('0.6931471805599453' AS double precision))",
        "lower": _change_case("lower", LOWER),
        "max": "pg_catalog.max",
        "min": "pg_catalog.min",
        "minute": _part("MINUTE"),
        "month": _part("MONTH"),
        "paragraph": "pg_catalog.string_agg({0}, ' ')",
        "quarter": _part("QUARTER"),
        "random": "pg_catalog.random",
        "rank": "pg_catalog.rank",
        "row_number": "pg_catalog.row_number",
        "sign": "pg_catalog.sign",
        "sqrt": "pg_catalog.sqrt",
        "start_of_day": _start("day"),
        "start_of_month": _start("month"),
        "start_of_quarter": _start("quarter"),
        "start_of_week": _start("week"),
        "start_of_year": _start("year"),
        "starts_with": "pg_catalog.starts_with",
        "substring": f"pg_catalog.substr({{0}}, {_at_most(1)}, {_at_most(2)})",
        "sum": "pg_catalog.sum",
        "sum_small": "pg_catalog.sum(CAST({0} AS integer))",
        "trim": "pg_catalog.btrim({0}, ' ')",
        "truncate": "pg_catalog.trunc",
        "upper": _change_case("upper", UPPER),
        "weekday": _part("DOW"),
        "words": "pg_catalog.concat_ws(' ', {all})",
        "year": _part("YEAR"),
    },
    join_same="(ARRAY[{0}] = ARRAY[{1}])",  # which can be hashed, and takes missing members for equal
    joins={"inner": "INNER JOIN", "left": "LEFT JOIN", "full": "FULL JOIN"},
    cast=_cast,
    safe_cast=_safe_cast,
    repeats=True,
    cast_condition=_cast_condition,
    with_once=_with_once,
    all_but=_no_star,
    lists_columns=True,
    fence=" OFFSET 0",
    read_value=_read_nothing,
    read_identity=_read_nothing,
    read_stored=read_stored,
    hash=_hash,
    struct=_struct,
    field=_field,
    list=_list,
    parameter=_parameter,
    light=80,
    reference=_reference,
    bind=_bind,
    guards=dict.fromkeys(DOMAINS, "before"),
    domains=DOMAINS,
)
