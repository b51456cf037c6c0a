"""The support vector machine: it separates, in one joint release."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from hubbub.learn import LinearSVC
from tests.learn.classes_made import blobs


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_classes_are_separated(delta: float) -> None:
    for centres in (2, 3):
        x, y = blobs(centres=centres)
        model = LinearSVC(epsilon=3.0, delta=delta, bounds=(-1, 1), classes=list(range(centres))).fit(x, y)
        assert model.score(x, y) > 0.95
        assert len(model.claim_.measured) == 1


def test_classes_have_names_and_no_intercept_is_wanted() -> None:
    x, y = blobs()
    names = np.array(["left", "right"])[1 - y]
    model = LinearSVC(epsilon=3.0, bounds=(-1, 1), classes=["right", "left"], fit_intercept=False).fit(x, names)
    assert model.classes_.tolist() == ["left", "right"]
    assert model.intercept_.tolist() == [0.0]
    assert model.score(x, names) > 0.95
    assert not hasattr(model, "predict_proba")


def test_the_claim_says_what_noise_there_was() -> None:
    x, y = blobs(300)
    claim = LinearSVC(epsilon=0.5, delta=1e-6, bounds=(-1, 1), classes=[0, 1]).fit(x, y).claim_
    assert claim.epsilon == 0.5
    assert "noise of standard deviation" in str(claim)
    assert "ε = 0.5, δ = 1e-06 for each row" in str(claim)
