"""R² for targets whose squares overflow, and the mixin that uses it."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from mixnorm import ShareBoostRegressor
from mixnorm.estimators._common.regressor import r2


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1.0, 1e200, 1e300])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_agrees_with_scikit_learn_in_any_unit(scale, outputs):
    rng = np.random.default_rng(0)
    y = rng.standard_normal((20, *outputs))
    found, weight = y + 0.3 * rng.standard_normal(y.shape), rng.uniform(0.0, 2.0, 20)
    wanted = r2_score(y, found, sample_weight=weight)
    assert r2(scale * y, scale * found, 1e300 * weight) == pytest.approx(wanted, rel=1e-9)


def test_hopeless_predictions_have_a_finite_score():
    score = r2(np.array([1.0, 2.0, 3.0]), np.array([1e300, -1e300, 0.0]))
    assert np.isfinite(score)
    assert score < -1e90


def test_the_score_of_an_estimator_does_not_overflow():
    X = np.random.default_rng(0).standard_normal((30, 3))
    y = 1e200 * X[:, 0]
    assert ShareBoostRegressor(1).fit(X, y).score(X, y) > 0.99
