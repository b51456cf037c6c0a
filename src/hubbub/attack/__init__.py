"""The attack lab: what a planned or a past release gives away. It shares no code with what it attacks."""

from hubbub.attack.averaging import averaging
from hubbub.attack.composition import composition
from hubbub.attack.differencing import differencing
from hubbub.attack.exclusion import exclusion
from hubbub.attack.finding import Finding
from hubbub.attack.green_hair import green_hair
from hubbub.attack.linkage import linkage, unique_people
from hubbub.attack.marginals import marginals
from hubbub.attack.membership import against_model, tracing
from hubbub.attack.oracles import error_oracle, timing_oracle
from hubbub.attack.precision import floating_point, precision
from hubbub.attack.reconstruction import reconstruction
from hubbub.attack.suppression import Published, hcup, suppression

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
