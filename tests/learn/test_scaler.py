"""Standardising and ranking columns."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.pipeline import make_pipeline

from hubbub.errors import ParameterError
from hubbub.learn import KBinsDiscretizer, LinearRegression, QuantileTransformer, StandardScaler
from hubbub.learn.quantile_transformer import first_rows
from hubbub.learn.statistics.cells import Array
from hubbub.learn.statistics.crowd import Crowd


def made(rows: int = 10_000) -> Array:
    chance = np.random.default_rng(0)
    spiked = np.where(chance.random(rows) < 0.8, 0.0, chance.uniform(0, 10, rows))
    return np.column_stack([chance.normal(5, 1, rows), chance.exponential(1, rows), spiked])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_means_and_variances(delta: float) -> None:
    x = made()
    model = StandardScaler(epsilon=20.0, delta=delta, bounds=(0, 10)).fit(x)
    assert model.mean_ == pytest.approx(x.mean(axis=0), abs=0.03)
    assert model.var_ == pytest.approx(x.var(axis=0), rel=0.1)
    assert model.n_samples_seen_ == pytest.approx(len(x), rel=0.01)
    turned = model.transform(x)
    assert turned.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.03)
    assert turned.std(axis=0) == pytest.approx([1, 1, 1], abs=0.1)
    assert model.inverse_transform(turned)[:5] == pytest.approx(np.clip(x[:5], 0, 10))
    assert "standard deviations" in str(model.claim_)


def test_either_can_be_left_out() -> None:
    x = made()
    only_mean = StandardScaler(with_std=False, epsilon=20.0, bounds=(0, 10)).fit(x)
    assert only_mean.transform(x).std(axis=0) == pytest.approx(np.clip(x, 0, 10).std(axis=0))
    only_size = StandardScaler(with_mean=False, epsilon=20.0, bounds=(0, 10)).fit(x)
    assert only_size.transform(x)[:, 0].mean() == pytest.approx(5 / only_size.scale_[0], abs=0.05)
    assert only_size.inverse_transform(only_size.transform(x)) == pytest.approx(np.clip(x, 0, 10))


def test_a_variance_is_never_below_what_noise_can_tell() -> None:
    model = StandardScaler(epsilon=1.0, bounds=(0, 1)).fit(np.full((1_000, 2), 0.5))
    assert (model.scale_ > 0.01).all()
    assert np.abs(model.transform([[0.0, 1.0]])).max() < 30
    tiny = StandardScaler(epsilon=0.01, delta=1e-9).fit(np.array([[np.nan, 1.0]]))
    assert np.isfinite(tiny.transform([[np.nan, np.inf]])).all()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_ranks_are_uniform(delta: float) -> None:
    x = made()
    model = QuantileTransformer(epsilon=20.0, delta=delta, bounds=(0, 10)).fit(x)
    ranked = model.transform(x)
    assert np.quantile(ranked[:, 0], [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.03)
    assert np.quantile(ranked[:, 1], [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.03)
    zeros = ranked[x[:, 2] == 0.0, 2]
    assert zeros.max() == zeros.min() == pytest.approx(0.4, abs=0.03)  # in the middle of the ranks they share
    assert model.quantiles_.shape == (33, 3)
    assert (np.diff(model.quantiles_, axis=0) >= 0).all()
    back = model.inverse_transform(ranked[:, :])
    assert back[:, 0] == pytest.approx(np.clip(x[:, 0], 0, 10), abs=0.3)


def test_normal_scores() -> None:
    x = made()
    model = QuantileTransformer(output_distribution="normal", epsilon=20.0, delta=1e-6, bounds=(0, 10)).fit(x)
    turned = model.transform(np.vstack([x, [[-1.0, np.nan, 99.0]]]))
    assert turned[:-1, 1].std() == pytest.approx(1, abs=0.15)
    assert np.isfinite(turned).all()
    assert model.inverse_transform(turned[:-1])[:, 1] == pytest.approx(np.clip(x[:, 1], 0, 10), abs=0.9)
    with pytest.raises(ParameterError, match="output_distribution"):
        QuantileTransformer(output_distribution="poisson", bounds=(0, 1)).fit(x)


def test_cells_of_equal_weight_and_of_equal_width() -> None:
    x = made()
    model = KBinsDiscretizer(4, epsilon=20.0, delta=1e-6, bounds=(0, 10)).fit(x)
    counts = np.bincount(model.transform(x)[:, 1].astype(int), minlength=4)
    assert counts == pytest.approx(np.full(4, 2_500), rel=0.1)
    even = KBinsDiscretizer(5, strategy="uniform", epsilon=1.0, bounds=(0, 10)).fit(x)
    assert even.transform([[1.9, 2.0, 99.0], [-5.0, np.nan, 9.9]]).tolist() == [[0, 1, 4], [0, 2, 4]]
    assert even.claim_.measured == ()
    bought = KBinsDiscretizer(5, strategy="uniform", epsilon=1.0, delta=1e-6).fit(x)
    assert len(bought.claim_.measured) == 3
    with pytest.raises(ParameterError, match="strategy"):
        KBinsDiscretizer(strategy="kmeans", bounds=(0, 1)).fit(x)


def test_a_person_hands_in_the_first_rows() -> None:
    kept = first_rows(Crowd.of(np.array([1, 0, 1, 1, 0, 2]), rows=6, most=2))
    assert kept is not None
    assert kept.tolist() == [True, True, True, False, True, True]
    assert first_rows(Crowd(rows=3)) is None
    x = np.append(np.zeros(5_000), np.full(5_000, 9.0))[:, None]
    groups = np.append(np.arange(5_000), np.full(5_000, 5_000))
    model = QuantileTransformer(n_quantiles=1, epsilon=20.0, bounds=(0, 10)).fit(x, groups=groups)
    assert model.quantiles_[1, 0] < 1  # half of all rows, and one person


def test_in_a_pipeline() -> None:
    x = made()
    y = x[:, 0] + x[:, 1]
    model = make_pipeline(
        StandardScaler(epsilon=2.0, delta=1e-6, bounds=(0, 10)),
        LinearRegression(epsilon=5.0, delta=1e-6, bounds=(-5, 5), y_bounds=(0, 20)),
    ).fit(x, y)
    assert model.score(x, y) > 0.8
