"""DuckDB's dialect.

Reals follow IEEE 754 here (the engine is told so), so that no operation on them raises and guards come after. A value
is bound by a lambda over a list of one.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hubbub.engines.dialects.dialect import Dialect
from hubbub.engines.duckdb.scan import TYPES, quote_name, quote_text, scan_identity, scan_value
from hubbub.engines.nodes.scalars import Tag
from hubbub.policy.kinds import Kind

_BOUND = quote_name("bound")


def _secret(place: int) -> str:
    return f"CAST(${place:d} AS UBIGINT)"


def _hash(tag: Tag, unit: str, content: Sequence[str]) -> str:
    """Mix the unit with one secret and content with the other, and hash both together.

    To hash them one by one would prefer the same content in every unit.
    """
    owner = f"hash({unit}, {_secret(1)}, {tag:d})" if tag in {Tag.CAP, Tag.ROWS} else f"hash({unit}, {_secret(1)})"
    match tag:
        case Tag.BLOCK:
            rest = _secret(2)
        case Tag.LISTED:  # codes are numbers already
            rest = f"xor(CAST({content[0]} AS UBIGINT), {_secret(2)})"
        case Tag.CAP:
            rest = f"xor(hash({', '.join(content)}), {_secret(2)})"
        case Tag.ROWS | Tag.UNLISTED:
            rest = f"hash({', '.join([*content, _secret(2)])})"
    return f"hash(xor({owner}, {rest}))"


def _cast(value: str, type_: str) -> str:
    return f"CAST({value} AS {type_})"


def _safe_cast(value: str, type_: str) -> str:
    return f"TRY_CAST({value} AS {type_})"


def _with_once(called: str, query: str, then: str) -> str:
    return f"WITH {called} AS MATERIALIZED ({query}) {then}"


def _all_but(columns: Sequence[str]) -> str:
    return f"* EXCLUDE ({', '.join(columns)})"


def _struct(fields: Mapping[str, str]) -> str:
    return f"struct_pack({', '.join(f'{quote_name(field)} := {value}' for field, value in fields.items())})"


def _list(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"


def _files(variable: str, replaced: bool, by_name: bool) -> str:
    options = ", utf8_validation = 'replace'" if replaced else ""
    options += ", union_by_name = TRUE" if by_name else ""
    return f"read_parquet(getvariable({quote_text(variable)}){options})"


def _read_identity(column: str, kind: Kind, replaced: bool) -> str:
    return scan_identity(column, kind, replaced=replaced)


def _reference(place: int) -> str:
    return f"struct_extract({_BOUND}, 'a{place:d}')"


def _bind(values: Mapping[int, str], body: str) -> str:
    packed = ", ".join(f"a{place:d} := {value}" for place, value in values.items())
    return f"list_extract(list_transform([struct_pack({packed})], lambda {_BOUND}: {body}), 1)"


DUCKDB = Dialect(
    name="DuckDB",
    quote_name=quote_name,
    quote_text=quote_text,
    types=TYPES,
    operators={
        "and": "AND",
        "or": "OR",
        "same": "IS NOT DISTINCT FROM",
        "like": "LIKE",
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
        "//": "//",
        "%": "%",
        "&": "&",
        "|": "|",
        "<<": "<<",
        ">>": ">>",
    },
    prefixes={"not": "NOT", "-": "-"},
    functions={
        "abs": "abs",
        "all_true": "min",
        "any_true": "max",
        "asinh": "asinh",
        "ceil": "ceil",
        "coalesce": "coalesce",
        "count": "count",
        "day": "day",
        "days_between": "({0} - {1})",
        "dense_rank": "dense_rank",
        "exp": "exp",
        "floor": "floor",
        "greatest": "greatest",
        "hour": "hour",
        "is_finite": "isfinite",
        "item": "list_extract",
        "lag": "lag",
        "lead": "lead",
        "least": "least",
        "length": "length",
        "list": "list",
        "ln": "ln",
        "log2": "log2",
        "lower": "lower",
        "max": "max",
        "min": "min",
        "minute": "minute",
        "month": "month",
        "paragraph": "string_agg({0}, ' ')",
        "quarter": "quarter",
        "random": "random",
        "rank": "rank",
        "row_number": "row_number",
        "sign": "sign",
        "sqrt": "sqrt",
        "start_of_day": "date_trunc('day', {0})",
        "start_of_month": "date_trunc('month', {0})",
        "start_of_quarter": "date_trunc('quarter', {0})",
        "start_of_week": "date_trunc('week', {0})",
        "start_of_year": "date_trunc('year', {0})",
        "starts_with": "starts_with",
        "substring": "substring",
        "sum": "sum",
        "sum_small": "sum",
        "trim": "trim({0}, ' ')",
        "truncate": "trunc",
        "upper": "upper",
        "weekday": "dayofweek",
        "words": "concat_ws(' ', {all})",
        "year": "year",
    },
    joins={"inner": "INNER JOIN", "left": "LEFT JOIN", "full": "FULL JOIN", "semi": "SEMI JOIN", "anti": "ANTI JOIN"},
    cast=_cast,
    safe_cast=_safe_cast,
    with_once=_with_once,
    all_but=_all_but,
    read_value=lru_cache(maxsize=4096)(scan_value),
    read_identity=lru_cache(maxsize=4096)(_read_identity),
    hash=_hash,
    struct=_struct,
    list=_list,
    files=_files,
    light=160,
    reference=_reference,
    bind=_bind,
    guards={
        "+": "after",
        "-": "after",
        "*": "after",
        "/": "after",
        "sqrt": "after",
        "ln": "after",
        "exp": "after",
        "log2": "after",
    },
)
