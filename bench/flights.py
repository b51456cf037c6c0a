"""Flights out of New York in 2013 (nycflights13, CC0), and ten questions about them. The unit is the plane.

Flights without a tail number belong to no plane; they are left out before anything is compared.
"""

import tempfile
import zipfile
from pathlib import Path

import duckdb

from bench.asked import Asked
from bench.data import shared
from hubbub.policy.build import single_table
from hubbub.policy.sources import source_of
from hubbub.policy.tables import Table

AIRLINES = {
    "9E": "Endeavor", "AA": "American", "AS": "Alaska", "B6": "JetBlue", "DL": "Delta", "EV": "ExpressJet",
    "F9": "Frontier", "FL": "AirTran", "HA": "Hawaiian", "MQ": "Envoy", "OO": "SkyWest", "UA": "United",
    "US": "US Airways", "VX": "Virgin America", "WN": "Southwest", "YV": "Mesa",
}  # fmt: skip
_KEYS = {"carrier": tuple(AIRLINES), "origin": ("EWR", "JFK", "LGA"), "month": tuple(range(1, 13))}
_BOUNDS = {"dep_delay": (-30, 240), "arr_delay": (-60, 240), "distance": (0, 3000), "air_time": (0, 420)}
_NOBODY_CUT = {"dep_delay": (-200, 2000), "arr_delay": (-200, 2000), "distance": (0, 9000), "air_time": (0, 1500)}


def make(folder: Path) -> None:
    """The published file and the names of airlines, as Parquet."""
    path = shared("flights", "flights.csv.zip")
    with tempfile.TemporaryDirectory(dir=folder) as name, zipfile.ZipFile(path) as archive:
        archive.extract("flights.csv", name)
        connection = duckdb.connect()
        connection.execute(
            f"COPY (SELECT * EXCLUDE (year, time_hour) FROM read_csv('{name}/flights.csv', nullstr = 'NA') "
            f"WHERE tailnum IS NOT NULL) TO '{folder}/flights.parquet' (FORMAT parquet)"
        )
        connection.execute("CREATE TABLE airlines (carrier VARCHAR, name VARCHAR)")
        connection.executemany("INSERT INTO airlines VALUES (?, ?)", list(AIRLINES.items()))
        connection.execute(f"COPY airlines TO '{folder}/airlines.parquet' (FORMAT parquet)")
        connection.close()


def declared(folder: Path, *, clamped: bool = True) -> dict[str, Table]:
    """The tables as their owner declares them; or with bounds that no value lies beyond."""
    connection = duckdb.connect()
    schemas = {
        name: [(row[0], row[1]) for row in connection.execute(f"DESCRIBE '{folder}/{name}.parquet'").fetchall()]
        for name in ("flights", "airlines")
    }
    connection.close()
    sources = {name: source_of(folder / f"{name}.parquet") for name in schemas}
    return {
        "flights": single_table(
            name="flights",
            source=sources["flights"],
            schema=schemas["flights"],
            unit="tailnum",
            types={"hour": "integer(8)"},
            bounds=_BOUNDS if clamped else _NOBODY_CUT,
            keys=_KEYS,
            nullable=dict.fromkeys(("month", "day", "hour", "carrier", "origin", "dest", "distance"), False),
        ),
        "airlines": single_table(name="airlines", source=sources["airlines"], schema=schemas["airlines"], unit=None),
    }


QUESTIONS = (
    Asked(
        name="flights and mean delay of the large carriers",
        text="""
            SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay
            FROM flights WHERE carrier IN ('UA', 'B6', 'EV', 'DL', 'AA', 'MQ', 'US', '9E')
            GROUP BY carrier ORDER BY flights DESC""",
        keys=1,
        max_groups=1,
        max_rows=250,
    ),
    Asked(
        name="cancelled flights by month",
        text="SELECT month, count(*) AS cancelled FROM flights WHERE dep_time IS NULL GROUP BY month ORDER BY month",
        keys=1,
        max_groups=8,
        max_rows=4,
    ),
    Asked(
        name="median and 0.9-quantile of the air time by airport",
        text="""
            SELECT origin, median(air_time) AS middle, quantile_cont(air_time, 0.9) AS long
            FROM flights GROUP BY origin ORDER BY origin""",
        keys=1,
        max_groups=2,
        max_rows=100,
    ),
    Asked(
        name="flights and share of late ones by hour",
        text="""
            SELECT hour, count(*) AS flights, 100 * avg(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) AS late
            FROM flights WHERE hour IN (6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
            GROUP BY hour ORDER BY hour""",
        keys=1,
        max_groups=16,
        max_rows=20,
    ),
    Asked(
        name="the ten busiest destinations, which nobody listed",
        text="SELECT dest, count(*) AS flights FROM flights GROUP BY dest ORDER BY flights DESC LIMIT 10",
        keys=1,
        max_groups=25,
        max_rows=60,
    ),
    Asked(
        name="how often planes fly",
        text="""
            SELECT CASE WHEN n < 10 THEN 'rarely' WHEN n < 50 THEN 'at times' WHEN n < 150 THEN 'often' ELSE 'daily' END
                AS use, count(*) AS planes
            FROM (SELECT tailnum, count(*) AS n FROM flights GROUP BY tailnum)
            GROUP BY use ORDER BY planes DESC""",
        keys=1,
        max_groups=1,
        max_rows=1,
    ),
    Asked(
        name="delay after a plane's last flight was late, and was not",
        text="""
            WITH legs AS (
                SELECT dep_delay, lag(arr_delay) OVER (PARTITION BY tailnum ORDER BY month, day, sched_dep_time, flight)
                    AS before
                FROM flights)
            SELECT before > 30 AS late, count(*) AS flights, avg(dep_delay) AS delay
            FROM legs WHERE before IS NOT NULL GROUP BY late""",
        keys=1,
        max_groups=2,
        max_rows=200,
    ),
    Asked(
        name="planes of each carrier that serve both LGA and JFK",
        text="""
            SELECT name, count(DISTINCT tailnum) AS planes
            FROM flights f JOIN airlines USING (carrier)
            WHERE f.origin = 'LGA' AND EXISTS (SELECT 1 FROM flights g WHERE g.tailnum = f.tailnum AND g.origin = 'JFK')
            GROUP BY name ORDER BY planes DESC""",
        keys=1,
        max_groups=1,
        max_rows=1,
    ),
    Asked(
        name="air time against distance",
        text="""
            SELECT corr(distance, air_time) AS r, regr_slope(air_time, distance) AS slope, avg(air_time) AS mean
            FROM flights WHERE air_time IS NOT NULL""",
        keys=0,
        max_groups=1,
        max_rows=200,
    ),
    Asked(
        name="destinations of each airport",
        text="SELECT origin, count(DISTINCT dest) AS places FROM flights GROUP BY origin ORDER BY places DESC",
        keys=1,
        max_groups=2,
        max_rows=2,
    ),
)
