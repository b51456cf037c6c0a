"""A small clinic on disk, generated: 40 people, 3 stays each."""

from pathlib import Path

import duckdb

POLICY = """\
version = "1"
ledger = "clinic.ledger"

[budget]
account = "patients"
epsilon = 10

[limits]
max_groups = 2
max_rows = 3

[tables.stays]
path = "stays.parquet"
unit = "patient_id"

[tables.stays.columns]
ward = { keys = ["north", "south"] }
cost = { bounds = [0, 100] }

[tables.wards]
path = "wards.csv"
public = true

[tables.wards.columns]
ward = { type = "text" }
floor = { type = "integer" }
"""


def built(folder: Path, *, policy: str = POLICY) -> Path:
    """The clinic in a folder; returns its policy."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE stays AS SELECT i // 3 AS patient_id, "
            "CASE WHEN i % 5 = 0 THEN 'north' ELSE 'south' END AS ward, (i % 50)::DOUBLE AS cost, "
            "DATE '2026-01-01' + (i % 60)::INTEGER AS day FROM range(120) AS t(i)"
        )
        connection.sql("FROM stays").write_parquet(str(folder / "stays.parquet"))
    (folder / "wards.csv").write_text("ward,floor\nnorth,1\nsouth,2\n")
    (folder / "hubbub.toml").write_text(policy)
    return folder / "hubbub.toml"
