"""More of Hubbub as a target of the lab: means, single counts, models, and a clinic that can be asked anything."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.cli.lab.targets import gate

if TYPE_CHECKING:
    from hubbub.attack.gateway.oracles import Ask
    from hubbub.attack.green_hair import Learner
    from hubbub.attack.membership import Loss

Array = Any


def means(rows: Array, *, epsilon: Fraction) -> Array:
    """Noisy means of Boolean columns, all of them for ε. How many people there are is public here."""
    from hubbub.mechanisms import Geometric

    width = rows.shape[1]
    law = Geometric(epsilon=_units(epsilon), sensitivity=width)
    sums = measure(law, rows.sum(axis=0), width=width, epsilon=epsilon)
    return sums / len(rows)


def counts(truth: int, *, epsilon: Fraction, times: int) -> list[float]:
    """One count in so many worlds, each with an account of its own: all that an attacker may see for ε."""
    from hubbub.mechanisms import Geometric

    law = Geometric(epsilon=_units(epsilon))
    return [float(measure(law, truth, width=1, epsilon=epsilon)) for _ in range(times)]


def _units(epsilon: Fraction) -> Fraction:
    """Round ε down to whole units of accounts: one third is not a whole number of them."""
    from hubbub.privacy.filter import whole_units_rounded_down

    return whole_units_rounded_down(epsilon)


def measure(law: Any, truth: Any, *, width: int, epsilon: Fraction) -> Any:
    """Through a meter whose account holds ε and no more."""
    import numpy as np

    from hubbub.gate.meter import Meter
    from hubbub.gate.secret import Facts, Secret
    from hubbub.privacy.budget import Budget
    from hubbub.privacy.sensitivity import Sensitivity

    facts = Facts(account="lab", sensitivity=Sensitivity(l0=width, linf=Fraction(1)))
    sealed = Secret(truth if isinstance(truth, int) else np.asarray(truth, dtype=np.int64), facts)
    return Meter({"lab": Budget(epsilon=epsilon)}).measure(law, sealed, label="lab").value


def private_perceptron(*, epsilon: Fraction, low: Sequence[float], high: Sequence[float]) -> "Learner":
    """The private perceptron's weights."""
    from hubbub.learn import Perceptron

    def learn(rows: Array, signs: Array) -> Array:
        model = Perceptron(epsilon=float(epsilon), bounds=(list(low), list(high)), classes=[-1, 1])
        return model.fit(rows, signs).coef_[0]

    return learn


def private_model(rows: Array, signs: Array, *, epsilon: Fraction) -> "Loss":
    """The loss of a private logistic regression of columns between −1 and 1."""
    import numpy as np

    from hubbub.learn import LogisticRegression

    width = rows.shape[1]
    model = LogisticRegression(
        epsilon=float(epsilon), bounds=([-1.0] * width, [1.0] * width), classes=[-1, 1], max_norm=float(width**0.5)
    ).fit(rows, signs)
    return lambda x, y: np.logaddexp(0, -y * model.decision_function(x))


def overfit_model(rows: Array, signs: Array) -> "Loss":
    """The squared loss of least squares with more columns than rows: it remembers each of them exactly."""
    import numpy as np

    weights = np.linalg.lstsq(rows, signs.astype(float), rcond=None)[0]
    return lambda x, y: (x @ weights - y) ** 2


@contextmanager
def clinic(bits: Sequence[int], *, epsilon: Fraction, questions: int) -> Iterator["Ask"]:
    """People with a code, a name and a secret bit; so many questions of any kind at an equal price."""
    people = len(bits)
    columns = {
        "id": range(people),
        "code": range(people),
        "ill": [int(bit) for bit in bits],
        "name": [f"person {place}" for place in range(people)],
    }
    bounds = {"code": (0, people - 1), "ill": (0, 1)}
    with gate("people", columns, epsilon=epsilon, bounds=bounds) as db:
        ask: Callable[[str], Any] = lambda text: db.sql(text, epsilon=epsilon / questions)  # noqa: E731
        yield ask
