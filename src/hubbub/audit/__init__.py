"""Empirical lower bounds on what anything that claims a guarantee really loses, and the suite that holds us to it."""

from hubbub.audit.blackbox import lower_bound, lower_bound_delta
from hubbub.audit.bounds import Counts, clopper_pearson
from hubbub.audit.conformance import conform
from hubbub.audit.examine import Settings, examine
from hubbub.audit.finding import Finding
from hubbub.audit.outputs import Raised
from hubbub.audit.report import Counterexample, Report
from hubbub.audit.subject import Claim, Pair, Subject

__all__ = [
    "Claim",
    "Counterexample",
    "Counts",
    "Finding",
    "Pair",
    "Raised",
    "Report",
    "Settings",
    "Subject",
    "clopper_pearson",
    "conform",
    "examine",
    "lower_bound",
    "lower_bound_delta",
]
