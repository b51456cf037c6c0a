"""Empirical lower bounds on what anything that claims a guarantee really loses, and the suite that holds us to it."""

from hubbub.audit.blackbox import lower_bound, lower_bound_delta
from hubbub.audit.bounds import Counts, clopper_pearson
from hubbub.audit.conformance import Report, conform
from hubbub.audit.finding import Finding
from hubbub.audit.outputs import Raised

__all__ = ["Counts", "Finding", "Raised", "Report", "clopper_pearson", "conform", "lower_bound", "lower_bound_delta"]
