"""A Secret gives nothing away by accident, and its facts refuse mechanisms that do not fit."""

import ast
import copy
import json
import operator
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.errors import MisfitError, ParameterError, SecretError
from hubbub.gate.secret import Facts, Secret
from hubbub.mechanisms import (
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    LaplaceThreshold,
    Mechanism,
    Quantile,
    RandomizedResponse,
    WeightedGaussianThreshold,
)
from hubbub.privacy.sensitivity import Neighbors, Sensitivity

ONE = Sensitivity(l0=1, linf=Fraction(1))


def sealed(value: Any = 8_271_828, **facts: Any) -> Secret[Any]:
    known: dict[str, Any] = {"account": "study", "sensitivity": ONE} | facts
    return Secret(value, Facts(**known))


LOOKING: dict[str, Callable[[Any], Any]] = {
    "str": str,
    "format": lambda s: f"{s}",
    "percent": lambda s: "%s" % s,  # noqa: UP031 - the old way must fail too
    "print": print,
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "bytes": bytes,
    "hash": hash,
    "len": len,
    "iter": list,
    "getitem": lambda s: s[0],
    "contains": lambda s: 1 in s,
    "equal": lambda s: s == 8_271_828,
    "not equal": lambda s: s != 8_271_828,
    "less": lambda s: s < 9,
    "at most": lambda s: s <= 9,
    "more": lambda s: s > 9,
    "at least": lambda s: s >= 9,
    "add": lambda s: s + 1,
    "radd": lambda s: 1 + s,
    "multiply": lambda s: 2 * s,
    "negate": operator.neg,
    "round": round,
    "array": np.asarray,
    "ufunc": lambda s: np.add(s, 1),
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "call": lambda s: s(),
    "with": lambda s: s.__enter__(),
    "set": lambda s: setattr(s, "facts", None),
    "delete": lambda s: delattr(s, "facts"),
}


@pytest.mark.parametrize("name", LOOKING)
def test_looking_into_a_secret_fails(name: str) -> None:
    with pytest.raises(SecretError):
        LOOKING[name](sealed())


def test_json_and_vars_fail() -> None:
    with pytest.raises(TypeError):
        json.dumps(sealed())
    with pytest.raises(TypeError):
        vars(sealed())


def test_repr_shows_the_account_and_not_the_value() -> None:
    assert repr(sealed()) == "<Secret of account 'study', sealed>"
    assert "8271828" not in repr([sealed()]) + repr({"x": sealed()})


def test_no_error_message_holds_the_value() -> None:
    for look in LOOKING.values():
        with pytest.raises(SecretError) as caught:
            look(sealed())
        assert "8271828" not in str(caught.value) + repr(caught.value.operands)


def test_only_the_meter_opens_secrets() -> None:
    source = Path(__file__).parents[2] / "src" / "hubbub"
    users = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.ImportFrom)
                and node.module in {"hubbub.gate.secret"}
                and "open_se" in ast.unparse(node)
            ):
                users.add(path.relative_to(source).as_posix())
            if isinstance(node, ast.Constant) and node.value in {"_Secret__sealed", "_Sealed__value", "_Sealed__read"}:
                users.add(path.relative_to(source).as_posix())
    assert users == {
        "gate/meter.py",
        "gate/secret.py",
        "audit/subjects/in_process/inside.py",
    }


def check_fits(mechanism: Mechanism, **facts: Any) -> None:
    sealed(**facts).facts.check_fit(mechanism)


def expect_refused(mechanism: Mechanism, words: str, **facts: Any) -> None:
    with pytest.raises(MisfitError, match=words):
        check_fits(mechanism, **facts)


def test_sensitivity_must_be_covered_exactly() -> None:
    for bound in (1, 3):
        check_fits(Geometric(epsilon=Fraction(1), sensitivity=3), sensitivity=Sensitivity(l1=Fraction(bound)))
    expect_refused(
        Geometric(epsilon=Fraction(1), sensitivity=3),
        "calibrated for a change of 3",
        sensitivity=Sensitivity(l1=Fraction(4)),
    )
    expect_refused(
        Geometric(epsilon=Fraction(1), sensitivity=3),
        "one unit can change this value by 10/3",
        sensitivity=Sensitivity(l1=Fraction(10, 3)),
    )


def test_l2_is_compared_through_its_square() -> None:
    two = Gaussian(sigma=Fraction(1), sensitivity_squared=Fraction(2))
    check_fits(two, sensitivity=Sensitivity(l0=2, linf=Fraction(1)))
    expect_refused(two, "√2 in L2.*√3", sensitivity=Sensitivity(l0=3, linf=Fraction(1)))
    expect_refused(two, "bound in L2", sensitivity=Sensitivity(linf=Fraction(1)))


def test_the_exact_one_dimensional_law_needs_one_moved_coordinate() -> None:
    one = Gaussian.at(epsilon=1, delta=1e-6, sensitivity=2)
    check_fits(one, sensitivity=Sensitivity(l0=1, linf=Fraction(2)))
    expect_refused(one, "changed coordinates.*any number", sensitivity=Sensitivity(l1=Fraction(2)))
    expect_refused(one, "changed coordinates.*2 here", sensitivity=Sensitivity(l0=2, linf=Fraction(1)))


def test_neighbours_must_be_the_same() -> None:
    expect_refused(Geometric(epsilon=Fraction(1)), "protects add-remove", neighbors=Neighbors.REPLACE_ONE)
    expect_refused(RandomizedResponse.basic(), "protects local")
    check_fits(RandomizedResponse.basic(), neighbors=Neighbors.LOCAL)


def test_integers_and_reals_are_told_apart() -> None:
    real = Laplace(epsilon=Fraction(1), sensitivity=Fraction(1), grid=Fraction(1, 8))
    check_fits(real, grid=None)
    expect_refused(real, "raw reals")
    expect_refused(Geometric(epsilon=Fraction(1)), "whole steps", grid=None)
    expect_refused(real, "changed coordinates", grid=None, sensitivity=Sensitivity(l1=Fraction(1)))


def test_scores_rows_and_keys_need_their_own_facts() -> None:
    plain = Exponential(epsilon=Fraction(1))
    check_fits(plain, sensitivity=Sensitivity(linf=Fraction(1)), grid=None)
    expect_refused(plain, "calibrated for a change of 1 in score", sensitivity=Sensitivity(linf=Fraction(2)), grid=None)
    monotone = Exponential(epsilon=Fraction(1), monotone=True)
    expect_refused(monotone, "monotone", sensitivity=Sensitivity(linf=Fraction(1)), grid=None)
    check_fits(monotone, sensitivity=Sensitivity(linf=Fraction(1), monotone=True), grid=None)
    median = Quantile(epsilon=Fraction(1), bounds=(Fraction(0), Fraction(9)), rows=2)
    check_fits(median, sensitivity=Sensitivity(rows=2), grid=None)
    expect_refused(median, "2 in rows", sensitivity=Sensitivity(rows=3), grid=None)
    expect_refused(median, "bound in rows", sensitivity=Sensitivity(l1=Fraction(1)), grid=None)
    keys = LaplaceThreshold(epsilon=Fraction(1), delta=Fraction(1, 100), keys_per_unit=3)
    check_fits(keys, sensitivity=Sensitivity(l0=3, linf=Fraction(1)))
    expect_refused(keys, "3 in units", sensitivity=Sensitivity(l0=4, linf=Fraction(1)))
    expect_refused(keys, "bound in units", sensitivity=Sensitivity(l0=3, linf=Fraction(2)))
    weighted = WeightedGaussianThreshold(epsilon=Fraction(1), delta=Fraction(1, 100), keys_per_unit=3)
    expect_refused(weighted, "bound in weights", sensitivity=Sensitivity(l0=3, linf=Fraction(1)))
    check_fits(weighted, sensitivity=Sensitivity(weighted=3))


def test_bad_facts_are_refused() -> None:
    with pytest.raises(ParameterError, match="account must be a name"):
        Facts(account="", sensitivity=ONE)
    with pytest.raises(ParameterError, match="grid must be a positive number"):
        Facts(account="a", sensitivity=ONE, grid=Fraction(0))
    with pytest.raises(ParameterError, match="monotone"):
        Facts(account="a", sensitivity=Sensitivity(linf=Fraction(1), monotone=True), neighbors=Neighbors.REPLACE_ONE)
