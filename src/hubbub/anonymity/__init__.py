"""Syntactic anonymity: measure a table, or make one satisfy a definition; and say what that does not cover."""

from hubbub.anonymity.hierarchies import Digits, Tree
from hubbub.anonymity.hierarchies import GeneralizationHierarchy as Hierarchy
from hubbub.anonymity.hierarchies import RangeHierarchy as Ranges
from hubbub.anonymity.make import Made, make
from hubbub.anonymity.measure import Measured, measure
from hubbub.anonymity.wanted import Wanted, not_covered

__all__ = ["Digits", "Hierarchy", "Made", "Measured", "Ranges", "Tree", "Wanted", "make", "measure", "not_covered"]
