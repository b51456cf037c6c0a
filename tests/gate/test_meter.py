"""The gate: charge, then open, then draw; nothing is spent by what is refused, and nothing is lent."""

import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.errors import AccountingError, BudgetExceeded, EngineError, MisfitError, ParameterError, UnknownAccount
from hubbub.mechanisms import Gaussian, Geometric, Laplace, LaplaceThreshold, TopK
from hubbub.privacy.loss import Approx, Pure
from hubbub.testing import replayed

ONE = hb.Sensitivity(l0=1, linf=Fraction(1))


def secret(value: Any = 100, account: str = "town", **facts: Any) -> hb.Secret[Any]:
    known: dict[str, Any] = {"account": account, "sensitivity": ONE} | facts
    return hb.Secret(value, hb.Facts(**known))


def meter(epsilon: float = 1.0, delta: float = 0.0) -> hb.Meter:
    return hb.Meter({"town": hb.Budget(epsilon=Fraction(epsilon), delta=Fraction(delta))})


def quarter(**options: Any) -> Geometric:
    return Geometric(epsilon=Fraction(1, 4), **options)


def test_the_budget_holds_exactly_four_quarters() -> None:
    gate = meter(1.0)
    entries = [gate.measure(quarter(), secret()).entry for _ in range(4)]
    assert entries == [1, 2, 3, 4]
    assert gate.spent("town") == Pure(epsilon=Fraction(1))
    with pytest.raises(BudgetExceeded, match=r"costs ε = 0.25; the account has ε = 0 left .* \(4 charges\)"):
        gate.measure(quarter(), secret())
    assert gate.spent("town") == Pure(epsilon=Fraction(1))


def test_less_than_one_unit_over_is_refused() -> None:
    gate = meter(1.0)
    gate.measure(Geometric(epsilon=Fraction(1, 2)), secret())
    over = Geometric(epsilon=Fraction(1, 2) + Fraction(1, 1 << 60))
    assert not gate.fits(over, "town")
    with pytest.raises(BudgetExceeded):
        gate.measure(over, secret())
    assert gate.fits(Geometric(epsilon=Fraction(1, 2)), "town")
    gate.measure(Geometric(epsilon=Fraction(1, 2)), secret())


class _Watched(Exception):
    """Raised where a value would be opened or a sample drawn."""


def test_refusals_come_before_anything_is_opened_or_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = meter(0.1)

    def forbidden(*_: object, **__: object) -> None:
        raise _Watched

    monkeypatch.setattr(gate, "_open", forbidden)
    with replayed() as source:
        with pytest.raises(BudgetExceeded):
            gate.measure(quarter(), secret())
        with pytest.raises(MisfitError):
            gate.measure(quarter(), secret(sensitivity=hb.Sensitivity(l1=Fraction(2))))
        with pytest.raises(UnknownAccount, match=r"no account 'city'\. Known: town"):
            gate.measure(quarter(), secret(account="city"))
        with pytest.raises(ParameterError, match="secret must be a Secret"):
            gate.measure(quarter(), 100)  # type: ignore[arg-type]
    assert source.draws == []
    assert gate.spent("town") == Pure(epsilon=Fraction(0))


def test_the_charge_is_made_before_the_value_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = meter(1.0)
    seen = []

    def watch(*_: object) -> int:
        seen.append(gate.spent("town"))
        raise _Watched

    monkeypatch.setattr(gate, "_open", watch)
    with pytest.raises(EngineError):
        gate.measure(quarter(), secret())
    assert seen == [Pure(epsilon=Fraction(1, 4))]
    assert gate.spent("town") == Pure(epsilon=Fraction(1, 4)), "a failure after the charge wastes it, and never lends"


def test_the_secrets_own_account_pays() -> None:
    gate = hb.Meter({name: hb.Budget(epsilon=Fraction(1)) for name in ("town", "city")})
    gate.measure(quarter(), secret(account="city"))
    assert gate.spent("city") == Pure(epsilon=Fraction(1, 4))
    assert gate.spent("town") == Pure(epsilon=Fraction(0))


def test_a_pure_account_refuses_what_is_not_pure() -> None:
    gate = meter(10.0)
    for mechanism in (Gaussian(sigma=Fraction(10)), LaplaceThreshold(epsilon=Fraction(1), delta=Fraction(1, 100))):
        with pytest.raises(AccountingError, match="not pure"):
            gate.measure(mechanism, secret({"a": 1}))
    assert gate.spent("town") == Pure(epsilon=Fraction(0))


def test_a_zcdp_account_pays_rho_and_failures_from_separate_pools() -> None:
    gate = meter(8.0, 1e-2)
    gate.measure(Gaussian(sigma=Fraction(4)), secret())
    after_one = gate.spent("town")
    assert isinstance(after_one, Approx)
    assert after_one.delta == Fraction(1e-2) / 2
    keys = LaplaceThreshold(epsilon=Fraction(1), delta=Fraction(3, 1000))
    gate.measure(keys, secret({"a": 1}))
    spent = gate.spent("town")
    assert isinstance(spent, Approx)
    assert 0 < spent.delta - after_one.delta - keys.event.failure < Fraction(1, 1 << 60)
    again = int(Fraction(1e-2) / 2 / keys.event.failure) - 1
    for _ in range(again):
        gate.measure(keys, secret({"a": 1}))
    with pytest.raises(BudgetExceeded, match="δ₀"):
        gate.measure(keys, secret({"a": 1}))
    gate.measure(Gaussian(sigma=Fraction(4)), secret())


def test_bounded_range_costs_an_eighth_and_laplace_its_own_rho() -> None:
    """Many small selections fit into a zCDP account that the sum of their ε would overrun."""
    gate = meter(2.0, 1e-6)
    best = TopK(epsilon=Fraction(1, 10), k=1)
    scores = secret((3, 1, 2), sensitivity=hb.Sensitivity(linf=Fraction(1)), grid=None)
    for _ in range(40):
        gate.measure(best, scores)
    spent = gate.spent("town")
    assert isinstance(spent, Approx)
    assert spent.epsilon < 2 < 40 * Fraction(1, 10)


def test_answers_come_back_in_the_units_of_the_grid() -> None:
    with replayed(3):
        steps = meter().measure(quarter(), secret(10)).value
    with replayed(3):
        release = meter().measure(quarter(), secret(10, grid=Fraction(5, 2)))
    assert release.value == steps * 2.5
    assert release.grid == Fraction(5, 2)
    around = release.interval()
    assert around.high - release.value == 2.5 * quarter().error(beta=0.05)


@pytest.mark.parametrize("grid", [None, Fraction(5, 2)])
def test_choices_and_keys_are_never_scaled(grid: Fraction | None) -> None:
    scores = secret((0, 90), sensitivity=hb.Sensitivity(linf=Fraction(1)), grid=grid)
    assert meter(9.0).measure(TopK(epsilon=Fraction(9), k=1), scores).value == (1,)
    keys = LaplaceThreshold(epsilon=Fraction(1), delta=Fraction(1, 100))
    shown = meter(9.0, 0.1).measure(keys, secret({"a": 900}, grid=grid))
    assert abs(shown.value["a"] - 900) < 100
    assert shown.grid == 1


def test_vectors_get_independent_noise() -> None:
    release = meter(4.0).measure(Geometric(epsilon=Fraction(1, 1000)), secret(np.zeros(1000, dtype=np.int64)))
    assert release.value.shape == (1000,)
    assert len(np.unique(release.value)) > 500


def test_raw_reals_go_through_laplace() -> None:
    real = Laplace(epsilon=Fraction(1), sensitivity=Fraction(1), grid=Fraction(1, 8))
    release = meter(1.0).measure(real, secret(2.5, grid=None))
    assert release.grid == 1
    assert (release.value * 8).is_integer()


def test_sixteen_threads_spend_exactly_the_budget() -> None:
    gate = meter(1.0)
    cheap = Geometric(epsilon=Fraction(1, 128))
    won: list[int] = []

    def spend() -> None:
        for _ in range(20):
            try:
                won.append(gate.measure(cheap, secret()).entry)
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=spend) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(1, 129))
    assert gate.spent("town") == Pure(epsilon=Fraction(1))


@pytest.mark.parametrize("bad", [{}, {"a": 1.0}, {"a": None}, {"a": hb.Budget(epsilon=Fraction(1)), "b": 1.0}])
def test_a_meter_needs_budgets(bad: Any) -> None:
    with pytest.raises(ParameterError, match="accounts must be"):
        hb.Meter(bad)


@pytest.mark.parametrize("epsilon", [float("nan"), -1, 0, float("inf"), 1e-400, True, "1", None])
def test_bad_budgets_are_refused(epsilon: Any) -> None:
    with pytest.raises(ParameterError, match=r"\[invalid-parameter\] epsilon must be a positive number"):
        hb.Budget(epsilon=epsilon)


@pytest.mark.parametrize("delta", [float("nan"), -1e-9, 1, 1.5, True, "0"])
def test_bad_deltas_are_refused(delta: Any) -> None:
    with pytest.raises(ParameterError, match="delta must be"):
        hb.Budget(epsilon=Fraction(1), delta=delta)
