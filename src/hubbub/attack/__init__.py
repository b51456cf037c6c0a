"""The attack lab: what a planned or a past release gives away. It shares no code with what it attacks."""

from hubbub.attack.composition import composition
from hubbub.attack.finding import AttackFinding as Finding
from hubbub.attack.gateway.averaging import averaging
from hubbub.attack.gateway.differencing import differencing
from hubbub.attack.gateway.exclusion import exclusion
from hubbub.attack.gateway.oracles import error_oracle, timing_oracle
from hubbub.attack.green_hair import green_hair
from hubbub.attack.linkage import linkage, unique_people
from hubbub.attack.marginals import marginals
from hubbub.attack.membership import against_model, tracing
from hubbub.attack.precision import floating_point, precision
from hubbub.attack.reconstruction import reconstruction
from hubbub.attack.suppression import PublishedTable as Published
from hubbub.attack.suppression import hcup, suppression

__all__ = [
    "Finding",
    "Published",
    "against_model",
    "averaging",
    "composition",
    "differencing",
    "error_oracle",
    "exclusion",
    "floating_point",
    "green_hair",
    "hcup",
    "linkage",
    "marginals",
    "precision",
    "reconstruction",
    "suppression",
    "timing_oracle",
    "tracing",
    "unique_people",
]
