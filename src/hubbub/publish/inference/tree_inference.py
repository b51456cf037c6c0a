"""Least squares for nested block sums, in two passes: upwards each node gathers what lies below it, downwards what its
parent knows better is shared out among its children. Linear in the number of nodes, and vectorised over each level.
"""

import math
from collections.abc import Sequence

import numpy as np

from hubbub.publish.strategies.layer import Array, Shape, gather, spread


class TreeInference:
    """The best linear unbiased estimate of the cells from noisy levels, the finest of which is the cells.

    Of node u, let y_u be the best estimate from u and all below it, with variance τ_u. It is the mean of u's own noisy
    number and of the sum S_u of its children's estimates, weighted by precision; errors of different subtrees are
    independent. The final estimate f_u is y_u at the top; and what the sum of children lacks, f_u - S_u, is given to
    them in proportion to their variances. That is Hay et al.'s inference for levels with variances of their own and
    nodes with any numbers of children; it equals weighted least squares.

    ``influence`` runs the transposed passes, so that the exact variance of any query costs as much as one estimate.
    """

    def __init__(self, *, levels: Sequence[Shape], variances: Sequence[float]) -> None:
        """``levels`` as numbers of blocks along each axis, coarsest first; blocks of one level nest in the next."""
        self._levels = tuple(levels)
        alone: Array = np.full((1,) * len(self._levels[-1]), float(variances[-1]))
        self._spreads = [alone]
        """τ, by level. Where all nodes of a level are alike there is one entry for all."""
        self._together: list[Array] = []
        """Στ over the children of each node."""
        self._variances = tuple(variances)
        for place in range(len(self._levels) - 2, -1, -1):
            self._together.insert(0, self._of_children(self._spreads[0], place))
            self._spreads.insert(0, 1 / (1 / variances[place] + 1 / self._together[0]))

    def estimate(self, noisy: Sequence[Array]) -> Array:
        upward = [one.reshape(level) for one, level in zip(noisy, self._levels, strict=True)]
        sums: list[Array] = []
        for place in range(len(upward) - 2, -1, -1):
            sums.append(gather(upward[place + 1], self._levels[place]))
            own = self._own(place)
            upward[place] = own * upward[place] + (1 - own) * sums[-1]
        upward.reverse()
        final = upward.pop()
        for place, together in enumerate(self._together):
            lacking = final - sums.pop()
            lacking /= together
            final = spread(lacking, self._levels[place + 1])
            final *= self._spreads[place + 1]
            final += upward.pop()
        return final

    def influence(self, queries: Array) -> list[Array]:
        finals: list[Array] = [queries] * len(self._levels)
        for place in range(len(self._levels) - 2, -1, -1):
            given = gather(finals[place + 1] * self._spreads[place + 1], self._levels[place])
            finals[place] = given / self._together[place]
        upward, found = finals[0], []
        for place in range(len(self._together)):
            own = self._own(place)
            found.append((own * upward).reshape(len(queries), -1))
            below = (1 - own) * upward - finals[place]
            upward = finals[place + 1] + spread(below, self._levels[place + 1])
        found.append(upward.reshape(len(queries), -1))
        return found

    def _own(self, place: int) -> Array:
        """τ_u / v_u: what a node's own number counts in y_u; its children count the rest."""
        found: Array = self._spreads[place] / self._variances[place]
        return found

    def _of_children(self, spreads: Array, place: int) -> Array:
        parents, children = self._levels[place], self._levels[place + 1]
        if spreads.size == 1 and all(many % few == 0 for many, few in zip(children, parents, strict=True)):
            return spreads * (math.prod(children) // math.prod(parents))
        return gather(np.broadcast_to(spreads, children), parents)
