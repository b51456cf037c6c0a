"""Customers, their orders and the lines of these, after the tables and laws of TPC-H, and twelve questions about them.

Made in DuckDB, from hashes of the rows' places: the same tables everywhere, at any size. A customer is the unit, and
lines carry their customer's key. Nations, regions, parts and suppliers are public.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.asked import Asked
from hubbub.policy.build import single_table
from hubbub.policy.paths import through
from hubbub.policy.tables import Table, TableSource

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN",
    "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM",
    "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
)  # fmt: skip
IN_REGION = (0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1)
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
TYPES = tuple(
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)
ORDERS = 10
"""Orders for each customer, on average; a third of the customers has none."""
PRIVATE = {"customer": "c_custkey", "orders": "o_custkey", "lineitem": "l_custkey"}
PUBLIC = ("nation", "region", "part", "supplier")
TABLES = (*PRIVATE, *PUBLIC)

_KEYS: Mapping[str, Mapping[str, object]] = {
    "customer": {"c_mktsegment": SEGMENTS},
    "orders": {"o_orderpriority": PRIORITIES, "o_orderstatus": ("F", "O", "P")},
    "lineitem": {"l_returnflag": ("A", "N", "R"), "l_linestatus": ("F", "O"), "l_shipmode": MODES},
}
_BOUNDS: Mapping[str, Mapping[str, object]] = {
    "customer": {"c_acctbal": (-1000, 10_000)},
    "orders": {"o_totalprice": (0, 600_000)},
    "lineitem": {
        "l_quantity": (1, 50),
        "l_extendedprice": (0, 105_000),
        "l_discount": (0, 0.125),
        "l_tax": (0, 0.125),
    },
}


def make(run: Callable[[str], object], *, customers: int) -> None:
    """All tables. ``run`` executes statements. Customers whose key divides by three order nothing."""
    parts, suppliers = max(50, customers * 4 // 3), max(25, customers // 15)
    run(f"""
        CREATE TABLE region AS SELECT unnest(range(5)) AS r_regionkey, unnest({list(REGIONS)}) AS r_name;
        CREATE TABLE nation AS SELECT unnest(range(25)) AS n_nationkey, unnest({list(NATIONS)}) AS n_name,
            CAST(unnest({list(IN_REGION)}) AS BIGINT) AS n_regionkey;
        CREATE TABLE part AS SELECT i AS p_partkey, {_one_of(TYPES, 1)} AS p_type, 1 + {_whole(2, 50)} AS p_size,
            (90000 + i // 10 % 20001 + 100 * (i % 1000)) / 100.0::DOUBLE AS p_retailprice
            FROM range(1, {parts} + 1) AS t(i);
        CREATE TABLE supplier AS SELECT i AS s_suppkey, {_whole(5, 25)} AS s_nationkey
            FROM range(1, {suppliers} + 1) AS t(i);
        CREATE TABLE customer AS SELECT i AS c_custkey, {_whole(11, 25)} AS c_nationkey,
            {_one_of(SEGMENTS, 12)} AS c_mktsegment, ({_whole(13, 1_099_999)} - 99_999) / 100.0::DOUBLE AS c_acctbal,
            (10 + {_whole(11, 25)})::VARCHAR || '-' || {_whole(14, 10**7)} AS c_phone
            FROM range(1, {customers} + 1) AS t(i)""")
    run(f"""
        CREATE TABLE drawn AS SELECT i, 1 + 3 * {_whole(21, -(-customers // 3))} + {_whole(22, 2)} AS o_custkey,
            DATE '1992-01-01' + CAST({_whole(23, 2406)} AS INTEGER) AS o_orderdate,
            {_one_of(PRIORITIES, 24)} AS o_orderpriority, {_whole(26, 50)} = 0 AS special, 1 + {_whole(25, 7)} AS many
            FROM range(1, {customers * ORDERS} + 1) AS t(i);
        CREATE TABLE numbered AS SELECT d.i AS l_orderkey, o_custkey AS l_custkey, o_orderdate, n AS l_linenumber,
            d.i * 8 + n AS i FROM drawn d, range(1, 8) AS t(n) WHERE n <= many AND o_custkey <= {customers};
        CREATE TABLE dated AS SELECT *, 1 + {_whole(31, parts)} AS l_partkey, 1 + {_whole(32, suppliers)} AS l_suppkey,
            1 + {_whole(33, 50)} AS l_quantity, {_whole(34, 11)} / 100.0::DOUBLE AS l_discount,
            {_whole(35, 9)} / 100.0::DOUBLE AS l_tax, {_one_of(MODES, 36)} AS l_shipmode,
            o_orderdate + CAST(1 + {_whole(37, 121)} AS INTEGER) AS l_shipdate,
            o_orderdate + CAST(30 + {_whole(38, 61)} AS INTEGER) AS l_commitdate,
            l_shipdate + CAST(1 + {_whole(39, 30)} AS INTEGER) AS l_receiptdate, {_whole(40, 2)} = 1 AS sent_back
            FROM numbered""")
    run("""
        CREATE TABLE lineitem AS SELECT l_orderkey, l_custkey, l_partkey, l_suppkey, l_linenumber, l_quantity,
            l_quantity * p_retailprice AS l_extendedprice, l_discount, l_tax,
            CASE WHEN l_receiptdate > DATE '1995-06-17' THEN 'N' WHEN sent_back THEN 'R' ELSE 'A' END AS l_returnflag,
            CASE WHEN l_shipdate > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus,
            l_shipdate, l_commitdate, l_receiptdate, l_shipmode
            FROM dated JOIN part ON p_partkey = l_partkey;
        CREATE TABLE orders AS SELECT i AS o_orderkey, o_custkey, CASE WHEN min(l_linestatus) = 'O' THEN 'O'
            WHEN max(l_linestatus) = 'F' THEN 'F' ELSE 'P' END AS o_orderstatus,
            sum(l_extendedprice * (1 + l_tax) * (1 - l_discount)) AS o_totalprice, o_orderdate, o_orderpriority,
            CASE WHEN special THEN 'special requests' ELSE 'as usual' END AS o_comment
            FROM drawn JOIN lineitem ON l_orderkey = i GROUP BY ALL;
        DROP TABLE drawn;
        DROP TABLE numbered;
        DROP TABLE dated""")


def _one_of(values: Sequence[str], salt: int) -> str:
    return f"[{', '.join(repr(one) for one in values)}][1 + {_whole(salt, len(values))}]"


def _whole(salt: int, many: int) -> str:
    """SQL for a whole number from 0 to many − 1, a function of the row's place."""
    return f"CAST(hash(64 * i + {salt}) % {many} AS BIGINT)"


def declared(
    source: Callable[[str], TableSource], schema: Callable[[str], Any], *, normal: bool = False
) -> dict[str, Table]:
    """The tables as their owner declares them; ``normal``: lines have no customer, and find it by their order."""
    by_order = {"lineitem": through("l_orderkey", to="orders", key="o_orderkey")} if normal else {}
    made = {}
    for name in TABLES:
        schema_of = [(column, str(type_)) for column, type_ in schema(name)]
        made[name] = single_table(
            name=name,
            source=source(name),
            schema=schema_of,
            unit=by_order.get(name, PRIVATE.get(name)),
            bounds=_BOUNDS.get(name),
            keys=_KEYS.get(name),
            nullable=dict.fromkeys([column for column, _ in schema_of], False),
            unique=name == "customer",
            uniques={"o_orderkey": True} if normal and name == "orders" else None,
        )
    return made


_REVENUE = "sum(l_extendedprice * (1 - l_discount))"

QUESTIONS = (
    Asked(
        name="Q1 pricing summary",
        text=f"""
            SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
                {_REVENUE} AS sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
                avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc,
                count(*) AS count_order
            FROM lineitem
            WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
            GROUP BY l_returnflag, l_linestatus
            ORDER BY l_returnflag, l_linestatus""",
        keys=2,
        max_groups=4,
        max_rows=50,
    ),
    Asked(
        name="Q3 unshipped orders by priority",
        text=f"""
            SELECT o_orderpriority, {_REVENUE} AS revenue, count(DISTINCT c_custkey) AS customers
            FROM customer, orders, lineitem
            WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_custkey = o_custkey
                AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
            GROUP BY o_orderpriority
            ORDER BY revenue DESC""",
        keys=1,
        max_groups=2,
        max_rows=5,
    ),
    Asked(
        name="Q4 orders with late lines",
        text="""
            SELECT o_orderpriority, count(*) AS order_count
            FROM orders
            WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
                AND EXISTS (
                    SELECT * FROM lineitem
                    WHERE l_custkey = o_custkey AND l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
            GROUP BY o_orderpriority
            ORDER BY o_orderpriority""",
        keys=1,
        max_groups=2,
        max_rows=1,
    ),
    Asked(
        name="Q5 local suppliers",
        text=f"""
            SELECT n_name, {_REVENUE} AS revenue
            FROM customer, orders, lineitem, supplier, nation, region
            WHERE c_custkey = o_custkey AND l_custkey = c_custkey AND l_orderkey = o_orderkey
                AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
                AND n_regionkey = r_regionkey AND r_name = 'ASIA'
                AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR
            GROUP BY n_name
            ORDER BY revenue DESC""",
        keys=1,
        max_groups=1,
        max_rows=2,
    ),
    Asked(
        name="Q6 revenue change",
        text="""
            SELECT sum(l_extendedprice * l_discount) AS revenue
            FROM lineitem
            WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
                AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
        keys=0,
        max_groups=1,
        max_rows=5,
    ),
    Asked(
        name="Q7 volume between nations",
        text="""
            SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
            FROM (
                SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year,
                    l_extendedprice * (1 - l_discount) AS volume
                FROM supplier, lineitem, customer, nation n1, nation n2
                WHERE s_suppkey = l_suppkey AND c_custkey = l_custkey AND s_nationkey = n1.n_nationkey
                    AND c_nationkey = n2.n_nationkey
                    AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')
                        OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
                    AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping
            WHERE l_year IN (1995, 1996)
            GROUP BY supp_nation, cust_nation, l_year
            ORDER BY supp_nation, cust_nation, l_year""",
        keys=3,
        max_groups=2,
        max_rows=2,
    ),
    Asked(
        name="Q10 returned items by nation",
        text=f"""
            SELECT n_name, {_REVENUE} AS revenue, count(DISTINCT c_custkey) AS customers
            FROM customer, orders, lineitem, nation
            WHERE c_custkey = o_custkey AND l_custkey = o_custkey AND l_orderkey = o_orderkey
                AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'
                AND l_returnflag = 'R' AND c_nationkey = n_nationkey
            GROUP BY n_name
            ORDER BY revenue DESC
            LIMIT 20""",
        keys=1,
        max_groups=1,
        max_rows=4,
    ),
    Asked(
        name="Q12 shipping modes and priority",
        text="""
            SELECT l_shipmode,
                sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high,
                sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low
            FROM orders, lineitem
            WHERE o_custkey = l_custkey AND o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
                AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
                AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR
            GROUP BY l_shipmode
            ORDER BY l_shipmode""",
        keys=1,
        max_groups=2,
        max_rows=2,
    ),
    Asked(
        name="Q13 how often customers order",
        text="""
            SELECT c_count, count(*) AS custdist
            FROM (
                SELECT c_custkey, count(o_orderkey) AS c_count
                FROM customer LEFT OUTER JOIN orders
                    ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
                GROUP BY c_custkey) AS c_orders
            GROUP BY c_count
            ORDER BY custdist DESC, c_count DESC
            LIMIT 20""",
        keys=1,
        max_groups=1,
        max_rows=1,
    ),
    Asked(
        name="Q14 promotions",
        text=f"""
            SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
                / {_REVENUE} AS promo_revenue
            FROM lineitem, part
            WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01'
                AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH""",
        keys=0,
        max_groups=1,
        max_rows=3,
    ),
    Asked(
        name="Q18 large orders by segment",
        text="""
            SELECT c_mktsegment, count(*) AS large_orders, avg(o_totalprice) AS mean_price
            FROM customer, orders
            WHERE c_custkey = o_custkey AND (o_custkey, o_orderkey) IN (
                SELECT l_custkey, l_orderkey FROM lineitem GROUP BY l_custkey, l_orderkey HAVING sum(l_quantity) > 200)
            GROUP BY c_mktsegment
            ORDER BY large_orders DESC""",
        keys=1,
        max_groups=1,
        max_rows=3,
    ),
    Asked(
        name="Q22 customers to win back",
        text="""
            SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
            FROM (
                SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
                FROM customer
                WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > 0.00
                    AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
            GROUP BY cntrycode
            ORDER BY cntrycode""",
        keys=1,
        max_groups=1,
        max_rows=1,
    ),
)
