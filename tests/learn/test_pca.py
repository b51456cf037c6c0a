"""Principal components of a noisy matrix."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.decomposition import PCA as Plain  # noqa: N811

from hubbub.errors import ParameterError
from hubbub.learn import PCA

Array = np.ndarray[Any, Any]


def made(rows: int = 20_000) -> Array:
    chance = np.random.default_rng(0)
    turned = np.linalg.qr(chance.normal(size=(4, 4)))[0]
    return np.asarray(0.3 + chance.normal(size=(rows, 4)) * np.array([0.3, 0.15, 0.05, 0.02]) @ turned)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_ample_budget_gives_the_components(delta: float) -> None:
    x = made()
    model = PCA(2, epsilon=100.0, delta=delta, bounds=(-3, 3)).fit(x)
    plain = Plain(2).fit(x)
    assert np.abs(np.sum(model.components_ * plain.components_, axis=1)) == pytest.approx([1, 1], abs=1e-3)
    assert model.explained_variance_ == pytest.approx(plain.explained_variance_, rel=0.05)
    assert model.explained_variance_ratio_ == pytest.approx(plain.explained_variance_ratio_, abs=0.02)
    assert model.mean_ == pytest.approx(x.mean(axis=0), abs=0.01)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, abs=0.005)
    assert model.singular_values_ == pytest.approx(plain.singular_values_, rel=0.05)
    along = model.transform(x)
    assert along.shape == (20_000, 2)
    assert model.inverse_transform(along) == pytest.approx(x, abs=0.4)
    assert model.get_feature_names_out().tolist() == ["pca0", "pca1"]


def test_one_epsilon_keeps_nearly_all_variance() -> None:
    x = made()
    covariance = np.cov(x.T)
    best = np.sort(np.linalg.eigvalsh(covariance))[-2:].sum()
    for bounds in ((-3, 3), None):
        found = PCA(2, epsilon=1.0, delta=1e-6, bounds=bounds).fit(x).components_
        assert found @ found.T == pytest.approx(np.eye(2), abs=1e-9)
        assert np.trace(found @ covariance @ found.T) > 0.97 * best


def test_whitened_coordinates_have_variance_one() -> None:
    x = made()
    model = PCA(2, whiten=True, epsilon=100.0, delta=1e-6, bounds=(-3, 3)).fit(x)
    assert model.transform(x).var(axis=0) == pytest.approx([1, 1], rel=0.1)
    assert model.inverse_transform(model.transform(x)) == pytest.approx(x, abs=0.4)


@pytest.mark.parametrize("x", [np.zeros((1, 2)), np.full((50, 2), np.nan), np.array([[1e300, -np.inf]] * 9)])
def test_no_data_is_too_bad(x: Array) -> None:
    for delta in (0.0, 1e-6):
        for bounds in ((-1, 1), None):
            model = PCA(epsilon=0.5, delta=delta, bounds=bounds).fit(x)
            assert np.isfinite(model.components_).all()
            assert (model.explained_variance_ >= 0).all()
            assert np.isfinite(model.transform(x)).all()


def test_parameters_are_checked_before_data() -> None:
    wrong: Any
    for wrong in (0, 5, 1.5):
        with pytest.raises(ParameterError, match="n_components"):
            PCA(wrong, bounds=(-3, 3)).fit(made(10))


def test_people_are_bounded() -> None:
    x = made()
    model = PCA(1, epsilon=20.0, delta=1e-6, bounds=(-3, 3), max_rows=2).fit(x, groups=np.arange(len(x)) // 4)
    plain = Plain(1).fit(x)
    assert abs(float(np.sum(model.components_ * plain.components_))) > 0.99
    assert model.n_samples_ == pytest.approx(10_000, rel=0.05)
