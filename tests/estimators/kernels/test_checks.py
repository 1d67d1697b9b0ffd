"""scikit-learn's checks for the learners with several kernels, and weights as repeated rows."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from mixnorm import (
    ConvMKLClassifier,
    ConvMKLClassifierCV,
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    SMSDMKLClassifier,
    SMSDMKLClassifierCV,
    UFOMKLClassifier,
    UFOMKLClassifierCV,
)
from mixnorm.kernels import gaussian_bank

# The checks are many, and they are about what goes in and comes out; but those of weights compare
# to 1e-7, for which fits go to the end and kernels are in float64.
SMALL = gaussian_bank([0.1, 1.0], relative=True, dtype="float64")
FINE = {"tol": 1e-14, "max_iter": 1000}
FEW = {"bank": SMALL, "Cs": [1.0, 10.0], "cv": 3, "tol": 0.1}
ESTIMATORS = [
    # With exponents near 1 an objective exact to 1e-16 leaves weights open by 1e-8.
    MKLClassifier(gaussian_bank(dtype="float64"), p=2.0),
    ConvMKLClassifier(SMALL),
    SMSDMKLClassifier(SMALL),
    SMSDMKLClassifier(SMALL, solver="mirror"),
    UFOMKLClassifier(SMALL),
    MKLRegressor(SMALL),
    KernelMulticlassSVC(),
    LinearMulticlassSVC(),
    MKLClassifierCV(ps=[1.2], **FEW),
    ConvMKLClassifierCV(ps=[1.2], tails=[2], **FEW),
    SMSDMKLClassifierCV(betas=[1e-2], tails=[2], **FEW),
    UFOMKLClassifierCV(betas=[1e-3], **FEW),
    MKLRegressorCV(ps=[1.2], **FEW),
]
WHY = "samples are met one at a time, in an order drawn at random: other rows, other order"
UNEQUAL = {f"check_sample_weight_equivalence_on_{kind}_data": WHY for kind in ("dense", "sparse")}


def online(estimator):
    return UNEQUAL if getattr(estimator, "solver", "exact") == "mirror" else {}


@pytest.mark.filterwarnings("ignore")  # the checks feed data that deserves warnings
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=online)
def test_scikit_learn_checks(estimator, check):
    check(estimator.set_params(**FINE) if check.func.__name__ in UNEQUAL else estimator)


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
