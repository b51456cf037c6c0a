"""A sparse release as frames: the types are those of the domain, also where nothing, or only some of it, is shown."""

from typing import Any

import numpy as np
import pytest

from hubbub import publish
from hubbub.policy.kinds import Type
from hubbub.publish import sparse

OVER: dict[str, Any] = {
    "page": range(1 << 40),
    "tag": sparse.Words(alphabet="ab", length=2, shorter=True),
    "wide": publish.bins(0, 2, 2),
    "mixed": [1, "1", None],
}
TYPES = {"page": Type.INTEGER, "tag": Type.TEXT, "wide": Type.TEXT, "mixed": Type.TEXT, "value": Type.REAL}


def released(*, at: int) -> sparse.SparseRelease:
    """Three large cells, which all have the number 1 for ``mixed``, or None."""
    keys = sparse.Keys.of(OVER)
    places = [np.array([5, 6, (1 << 40) - 1]), np.array([0, 1, 6]), np.array([0, 1, 1]), np.array([0, 0, 2])]
    counts = np.array([10**6] * 3)
    return sparse.run(keys.decode(keys.pack(places)), counts, OVER, sparse.Threshold(at=at), epsilon=1)


@pytest.mark.parametrize(("at", "many"), [(10**5, 3), (10**9, 0)])
def test_types_are_those_of_the_domain(at: int, many: int) -> None:
    found = released(at=at)
    columns = {one.name: one for one in found._columns()}
    assert {name: one.type for name, one in columns.items()} == TYPES
    assert len(found) == many
    if many:
        assert list(columns["mixed"].values) == ["1", "1", None]
        assert list(columns["tag"].values) == found.to_table()["tag"]


@pytest.mark.parametrize("at", [10**5, 10**9])
def test_all_kinds_of_frames_say_the_same(at: int) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    found = released(at=at)
    table, frame, other = found.to_arrow(), found.to_pandas(), found.to_polars()
    assert table.schema.names == list(frame.columns) == other.columns == list(TYPES)
    assert (table.schema.field("page").type, table.schema.field("mixed").type) == (arrow.int64(), arrow.string())
    assert str(frame["page"].dtype).lower() == str(other["page"].dtype).lower() == "int64"
    assert other.to_dict(as_series=False) == table.to_pydict()
    assert frame["page"].tolist() == table.to_pydict()["page"] == found.to_table()["page"]
    assert frame["value"].tolist() == found.to_table()["value"]
