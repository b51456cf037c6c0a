"""Every strategy says how far a workload will be off before anything is spent, or why nobody can."""

from fractions import Fraction

import pytest

from hubbub import publish
from hubbub.errors import HubbubError
from hubbub.publish.strategies.strategy import Strategy

CELLS = 16
PREFIXES = publish.Prefixes(length=CELLS)
FORETOLD = (
    publish.Flat(),
    publish.Hierarchy(),
    publish.Wavelet(),
    publish.Matrix(workload=PREFIXES),
    publish.Cube(ways=1),
    publish.Marginals(ways=1),
)
BY_DATA = (publish.Fourier(), publish.CountSketch(rows=3, width=4), publish.JohnsonLindenstrauss(size=4))


@pytest.mark.parametrize("strategy", FORETOLD, ids=lambda one: one.name)
def test_the_error_is_that_of_the_variances(strategy: Strategy) -> None:
    found = strategy.error(PREFIXES, 1, delta=Fraction(1, 10**6))  # type: ignore[attr-defined]
    ready = strategy.prepare((CELLS,), publish.Terms.at(1, Fraction(1, 10**6)))
    queries = [[float(place <= end) for place in range(CELLS)] for end in range(CELLS)]
    assert found.rmse**2 == pytest.approx(ready.variances(queries).mean(), rel=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", BY_DATA, ids=lambda one: one.name)
def test_an_error_that_depends_on_the_data_is_refused_with_the_reason(strategy: Strategy) -> None:
    with pytest.raises(HubbubError, match="no error to state"):
        strategy.error(PREFIXES, 1)  # type: ignore[attr-defined]
