"""Every cell by itself: the histogram that everyone knows, and what everything else is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hubbub.publish.strategies.layer import Array, CellLayer, Layer, Shape
from hubbub.publish.strategies.strategy import Foretold, PreparedLayers, prepare_layers
from hubbub.publish.terms import Noise, Terms
from hubbub.publish.workload.gram import Covariance
from hubbub.publish.workload.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat(Foretold):
    """Independent noise on each cell: best for single cells; ranges add up the noise of all their cells.

    Privacy:
        Claim: (ε, δ) of the terms for cells that one unit moves within its contribution.
        Proof: one layer, the cells themselves, at the whole price (``publish.terms``).
        Needs: mechanisms.Geometric or mechanisms.Gaussian.
        Ref: Dwork, McSherry, Nissim, Smith 2006.
    """

    noise: Noise | None = None
    workload: Workload | None = None
    """What the law of the noise is chosen for, where none is named."""
    name: str = "flat"

    def prepare(self, shape: Shape, terms: Terms) -> PreparedLayers:
        return prepare_layers(self, shape, terms, noise=self.noise, workload=self.workload)

    def layers(self, shape: Shape, noise: Noise) -> tuple[Layer, ...]:
        return (CellLayer(shape=shape),)

    def shares(self, shape: Shape, noise: Noise) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    def inference(self, shape: Shape, noise: Noise, variances: Sequence[float]) -> "_AsItIs":
        return _AsItIs(shape)


@dataclass(frozen=True, slots=True)
class _AsItIs:
    shape: Shape

    def estimate(self, noisy: Sequence[Array]) -> Array:
        return noisy[0].reshape(self.shape)

    def influence(self, queries: Array) -> list[Array]:
        return [queries.reshape(len(queries), -1)]

    def covariance(self, variances: Sequence[float]) -> Covariance:
        return Covariance(factors=self.shape, scale=variances[0])
