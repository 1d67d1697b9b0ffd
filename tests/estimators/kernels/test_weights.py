"""Weights of the learners with several kernels are repeated rows."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from mixnorm import (
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MKLClassifier,
    MKLRegressor,
    UFOMKLClassifier,
)
from mixnorm.kernels import gaussian_bank

BANK = gaussian_bank([0.125, 0.5, 2.0, 8.0], dtype="float64")
WEIGHTED = [
    MKLClassifier(BANK),
    MKLClassifier(BANK, loss="squared_hinge"),
    MKLClassifier(BANK, p=np.inf),
    UFOMKLClassifier(BANK),
    KernelMulticlassSVC(gamma=0.5),
    LinearMulticlassSVC(),
    MKLRegressor(BANK),
    MKLRegressor(BANK, p=2.0),
]


@pytest.mark.parametrize("model", WEIGHTED, ids=lambda model: type(model).__name__)
def test_weights_are_repeated_rows(model):
    """Whole weights, zero among them; widths are absolute, so that the kernels are the same."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-1.0, 1.0, size=(50, 4)), rng.uniform(-1.0, 1.0, size=(20, 4))
    sums = 1.5 * (X[:, 0] + X[:, 1]) + 0.3 * rng.normal(size=50)
    y = np.floor(sums).astype(int) % 3 if is_classifier(model) else np.stack([sums, X[:, 2]], 1)
    weight = rng.integers(0, 4, size=50)
    model = clone(model).set_params(tol=1e-9, max_iter=1000)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    scores = "decision_function" if is_classifier(model) else "predict"
    np.testing.assert_allclose(
        getattr(weighted, scores)(new), getattr(repeated, scores)(new), atol=1e-4
    )
    plain = clone(model).fit(X, y)
    assert np.max(np.abs(getattr(plain, scores)(new) - getattr(weighted, scores)(new))) > 0.01
