"""Maps: strategies for counts on a rectangle of cells, such as places of a fine grid."""

from hubbub.publish.spatial.auto import Auto
from hubbub.publish.spatial.grids import AdaptiveGrid, UniformGrid
from hubbub.publish.spatial.quad_tree import QuadTree, Shares
from hubbub.publish.spatial.regions import Hybrid, KdTree

__all__ = ["AdaptiveGrid", "Auto", "Hybrid", "KdTree", "QuadTree", "Shares", "UniformGrid"]
