"""Sample weights count in the fits of folds as repeated rows do."""

import numpy as np
import pytest
from sklearn.base import is_classifier

from mixnorm import (
    MixedNormClassifierCV,
    MixedNormRegressorCV,
    MultiTaskLearnerCV,
    TensorKernelClassifierCV,
    TensorKernelRegressorCV,
)

TIGHT = {"tol": 1e-9, "max_iter": 10000}
ALPHAS = {"alphas": [0.1, 0.03, 0.01]}
SEARCHES = [
    MixedNormClassifierCV(scoring="neg_log_loss"),
    MixedNormRegressorCV(),
    MixedNormRegressorCV(standardize=True),
    MultiTaskLearnerCV(),
    MultiTaskLearnerCV(scoring="score", standardize=True),
    TensorKernelClassifierCV(gammas=[0.1, 1.0, 100.0]),
    TensorKernelRegressorCV(gammas=[0.1, 1.0, 10.0]),
]


@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_whole_weights_are_repeated_rows(search):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.7 * rng.normal(size=40)
    if is_classifier(search):
        y = y > 0.0
    weight = rng.integers(0, 5, size=40)
    fold = np.arange(40) % 3
    options = TIGHT | (ALPHAS if hasattr(search, "alphas") else {})

    def curve(X, y, fold, **given):
        cv = [(np.flatnonzero(fold != test), np.flatnonzero(fold == test)) for test in range(3)]
        return search.set_params(**options, cv=cv).fit(X, y, **given).cv_results_["mean_test_score"]

    found = curve(X, y, fold, sample_weight=weight)
    again = np.repeat(np.arange(40), weight)
    np.testing.assert_allclose(found, curve(X[again], y[again], fold[again]), atol=1e-5)
    assert np.max(np.abs(found - curve(X, y, fold))) > 1e-3
