"""A hospital that does not exist: patients, stays, wards and costs, as skewed as real ones."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np

WARDS = ("cardiology", "emergency", "geriatrics", "maternity", "oncology", "paediatrics", "psychiatry", "surgery")
_SHARES = (0.14, 0.27, 0.12, 0.08, 0.09, 0.07, 0.06, 0.17)
_NIGHTS = (4.1, 1.3, 9.5, 2.6, 5.2, 2.2, 14.0, 4.8)
_COSTS = (6.9, 5.6, 7.2, 7.0, 8.1, 6.1, 7.4, 7.9)
_FLOORS = (2, 0, 4, 3, 2, 3, 4, 1)
STAYS = 200_000
PATIENTS = 80_000
_REGULARS = 5000
"""The larger, the less the most frequent patients stay: at most some 20 times in a year."""
MOST_STAYS = 24
"""More stays of one patient than there are: what an owner who knows the hospital would declare."""
KM = 24
"""Side of the country around it, in which patients live."""
_TOWNS = ((11.0, 13.0, 2.2, 0.5), (18.5, 7.0, 1.0, 0.2), (5.0, 19.0, 0.8, 0.15), (12.0, 12.0, 6.0, 0.15))
"""Kilometres east and north, how wide, and the share of patients."""


def homes(patients: int, *, seed: int) -> np.ndarray[Any, Any]:
    """Where each patient lives: kilometres east and north."""
    rng = np.random.default_rng(seed)
    towns = np.array(_TOWNS)
    town = towns[rng.choice(len(towns), size=patients, p=towns[:, 3])]
    return np.clip(np.round(rng.normal(town[:, :2], town[:, 2:3]), 3), 0, KM - 0.001)


def build(folder: Path, *, stays: int = STAYS, patients: int = PATIENTS, seed: int = 11) -> tuple[Path, Path]:
    """Writes stays.parquet (private) and wards.parquet (public); few patients have most of the stays."""
    rng = np.random.default_rng(seed)
    weights = 1 / (np.arange(1, patients + 1) + _REGULARS) ** 0.55
    patient = rng.permutation(patients)[rng.choice(patients, size=stays, p=weights / weights.sum())]
    age = np.clip(rng.gamma(5.5, 10.0, size=patients), 0, 104).astype(np.int64)[patient]
    ward = rng.choice(len(WARDS), size=stays, p=_SHARES)
    ward = np.where((age < 16) & (rng.random(stays) < 0.7), WARDS.index("paediatrics"), ward)
    nights = np.minimum(rng.geometric(1 / (1 + np.asarray(_NIGHTS)[ward])) - 1, 180)
    cost = np.round(np.exp(rng.normal(np.asarray(_COSTS)[ward], 0.6)) * (1 + 0.15 * nights), 2)
    day = rng.integers(0, 365, size=stays)
    home = homes(patients, seed=seed + 1)[patient]
    folder.mkdir(parents=True, exist_ok=True)
    table, wards = folder / "stays.parquet", folder / "wards.parquet"
    connection = duckdb.connect()
    columns = {"patient_id": patient, "age": age, "nights": nights, "cost": cost, "day": day, "place": ward}
    columns |= {"home_x": home[:, 0], "home_y": home[:, 1]}
    names = ", ".join(f"'{name}'" for name in WARDS)
    connection.register("generated", {name: np.ascontiguousarray(values) for name, values in columns.items()})
    connection.execute(
        f"COPY (SELECT patient_id, age, [{names}][place + 1] AS ward, DATE '2025-01-01' + day::INTEGER AS admitted, "
        f"nights, cost, home_x, home_y FROM generated) TO '{table}' (FORMAT parquet)"
    )
    rows = ", ".join(f"('{name}', {floor})" for name, floor in zip(WARDS, _FLOORS, strict=True))
    connection.execute(f"COPY (SELECT * FROM (VALUES {rows}) AS t(ward, floor)) TO '{wards}' (FORMAT parquet)")
    connection.close()
    return table, wards
