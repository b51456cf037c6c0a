"""Privacy loss: the cost of a release, the neighbouring relation it protects, and composition.

loss        how much: Pure, Approx, Zcdp, Rdp, Pld
event       what happened: frozen records with stable JSON
accountant  what a fixed plan costs together
filter      what adaptively chosen questions may cost
calibrate   the least noise for a target
amplify     what secret samples and shuffles add
explain     a guarantee read for a person, and how many people a study needs
"""

from hubbub.privacy.accountant import compose, delta_of, epsilon_of
from hubbub.privacy.events.event import Event, event_from_json
from hubbub.privacy.explain import Reading, explain, sample_size
from hubbub.privacy.filter import FamilyFilter, PureFilter, Spent, filter_for, whole_units_rounded_down
from hubbub.privacy.loss import Approx, Loss, Pld, Pure, Rdp, Zcdp
from hubbub.privacy.sensitivity import Neighbors

__all__ = [
    "Approx",
    "Event",
    "FamilyFilter",
    "Loss",
    "Neighbors",
    "Pld",
    "Pure",
    "PureFilter",
    "Rdp",
    "Reading",
    "Spent",
    "Zcdp",
    "compose",
    "delta_of",
    "epsilon_of",
    "event_from_json",
    "explain",
    "filter_for",
    "sample_size",
    "whole_units_rounded_down",
]
