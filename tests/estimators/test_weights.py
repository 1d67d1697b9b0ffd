"""Weights of samples are repeated rows, for every learner that is given all rows at once."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from mixnorm import (
    ConvMKLClassifier,
    ConvMKLClassifierCV,
    GreedyMKLClassifier,
    GreedyMKLRegressor,
    GreedyOptions,
    JointBoostClassifier,
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MixedNormClassifier,
    MixedNormClassifierCV,
    MixedNormRegressor,
    MixedNormRegressorCV,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    MultiTaskLearner,
    MultiTaskLearnerCV,
    OneVsRestGreedy,
    ShareBoostClassifier,
    ShareBoostClassifierCV,
    ShareBoostRegressor,
    ShareBoostRegressorCV,
    SMSDMKLClassifier,
    SMSDMKLClassifierCV,
    TensorKernelClassifier,
    TensorKernelClassifierCV,
    TensorKernelRegressor,
    TensorKernelRegressorCV,
    UFOMKLClassifier,
    UFOMKLClassifierCV,
    estimators,
)
from mixnorm.kernels import (
    GaussianKernel,
    KernelBank,
    LaplacianKernel,
    PolynomialKernel,
    gaussian_bank,
)
from mixnorm.pools import Boxes, Columns, Patches, Pieces, Products, Stumps, Union

FINE = {"tol": 1e-10, "max_iter": 5000}
EXACT = GreedyOptions(**FINE)
EACH = KernelBank.per_feature(widths=[0.1, 1.0], dtype="float64")
KINDS = [GaussianKernel(0.5, True), LaplacianKernel(1.0, True), PolynomialKernel(2), "linear"]
BANK = KernelBank(KINDS, dtype="float64")
TAIL = KernelBank(KINDS, dtype="float64", normalize="tail", tail=2)
NYSTROM = KernelBank(KINDS, dtype="float64", factors="nystrom", rank=8)
WAVES = gaussian_bank([0.1, 1.0], relative=True, dtype="float64", factors="random")
MODELS = [
    ShareBoostClassifier(4, options=EXACT),
    ShareBoostClassifier(
        4, loss="logistic", alpha=1e-3, options=GreedyOptions(scale="max", **FINE)
    ),
    ShareBoostClassifier(4, alpha=1e-3, options=GreedyOptions(penalty="linf,1", **FINE)),
    ShareBoostClassifier(4, alpha=1e-3, options=GreedyOptions(penalty="l1", **FINE)),
    ShareBoostClassifier(4, options=GreedyOptions(swaps=2, backward=2, rule="exact", **FINE)),
    ShareBoostClassifier(4, pool=Stumps(max_bins=4), options=EXACT),
    ShareBoostClassifier(4, pool=Products(), options=EXACT),
    ShareBoostClassifier(4, pool=Boxes(max_bins=4), options=EXACT),
    ShareBoostClassifier(4, pool=Pieces(n_centers=8, n_radii=5), random_state=0, options=EXACT),
    ShareBoostClassifier(4, pool=Pieces(n_radii=5), random_state=0, options=EXACT),
    ShareBoostClassifier(4, pool=Patches(2, n_templates=5, masks=4), random_state=0, options=EXACT),
    ShareBoostClassifier(4, pool=Union([Columns(), Stumps(max_bins=4)]), options=EXACT),
    ShareBoostRegressor(4, options=EXACT),
    ShareBoostRegressor(4, pool=Boxes(), options=EXACT),
    OneVsRestGreedy(3, options=EXACT),
    JointBoostClassifier(10, n_bins=4),
    MixedNormClassifier(standardize=True, class_weight="balanced", tol=1e-12, max_iter=10_000),
    MixedNormRegressor(alpha=0.1, tol=1e-12),
    MixedNormRegressor(alpha=0.1, loss="huber", standardize=True, tol=1e-12, max_iter=10_000),
    MultiTaskLearner(tol=1e-12, max_iter=10_000),
    TensorKernelRegressor(),
    TensorKernelClassifier(tol=1e-14),
    KernelMulticlassSVC(**FINE),
    KernelMulticlassSVC(kernel="poly", **FINE),
    LinearMulticlassSVC(**FINE),
    MKLClassifier(BANK, p=2.0, tol=1e-13, max_iter=5000),
    MKLRegressor(BANK, **FINE),
    MKLRegressor(TAIL, **FINE),
    MKLRegressor(NYSTROM, **FINE),
    MKLRegressor(WAVES, **FINE),
    ConvMKLClassifier(BANK, p=2.0, tail=2, tol=1e-13, max_iter=5000),
    UFOMKLClassifier(BANK, **FINE),
    SMSDMKLClassifier(gaussian_bank([0.1, 1.0], relative=True, dtype="float64"), tail=2, **FINE),
    GreedyMKLClassifier(EACH, n_kernels=3),
    GreedyMKLClassifier(BANK, n_kernels=2, loss="logistic", tol=1e-12),
    GreedyMKLRegressor(EACH, n_kernels=3),
    GreedyMKLRegressor(EACH, n_kernels=3, scan="factors", rank=4),
    GreedyMKLRegressor(EACH, n_kernels=3, algorithm="l1", tol=1e-12),
    GreedyMKLRegressor(EACH, n_kernels=3, algorithm="l2", n_steps=5),
    GreedyMKLRegressor(NYSTROM, n_kernels=3),
]


def others(listed, searching):
    """Learners that are not in a list, with their defaults, and search for parameters or do not.

    Those in ``online`` are given rows one by one: to these a weight is no repetition.
    """
    found = [getattr(estimators, name) for name in estimators.__all__]
    learners = [
        kind for kind in found if hasattr(kind, "fit") and ".online." not in kind.__module__
    ]
    new = [kind() for kind in learners if kind not in map(type, listed)]
    return [model for model in new if ("cv" in model.get_params()) == searching]


MODELS += others(MODELS, searching=False)
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model)[:70])


def rows_of(kind, model):
    """Rows with many ties, as in images and questionnaires, or with none."""
    rng = np.random.default_rng(0)
    if kind == "ties":
        X = rng.integers(0, 3, size=(80, 9)).astype(float)
        y = (X[:, 0] + 2.0 * X[:, 1] + (rng.random(80) < 0.2)).astype(int) % 3
    else:
        X = rng.normal(size=(60, 9)) * np.logspace(-1, 1, 9)
        y = np.digitize(10.0 * X[:, 0] + X[:, 3], [-1.0, 1.0])
    return X, y if is_classifier(model) else y + X @ np.linspace(-1.0, 1.0, 9)


def scores(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def assert_same(one, other, X, rtol=1e-6):
    found, expected = scores(one, X), scores(other, X)
    np.testing.assert_allclose(found, expected, atol=rtol * np.max(np.abs(expected)), rtol=0)


@each_model
@pytest.mark.parametrize("kind", ["ties", "none"])
def test_weights_are_repeated_rows(kind, model):
    """The rows come in another order too; only a solver's tolerance is between the two."""
    X, y = rows_of(kind, model)
    rng = np.random.default_rng(1)
    weight, order = rng.integers(0, 4, size=len(X)), rng.permutation(len(X))
    weighted = clone(model).fit(X[order], y[order], sample_weight=weight[order])
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    # Boxes and balls that hold the same rows are equally good: rounding tells which is chosen.
    alike = isinstance(getattr(model, "pool", None), (Boxes, Pieces))
    assert_same(weighted, repeated, X[weight > 0] if alike else X)


@each_model
def test_rows_without_weight_do_not_matter(model):
    X, y = rows_of("none", model)
    kept = np.random.default_rng(1).random(len(X)) < 0.7
    far = np.where(kept[:, None], X, 1e6 * X)
    strange = y if is_classifier(model) else np.where(kept, y, 1e9)
    weighted = clone(model).fit(far, strange, sample_weight=kept.astype(float))
    assert_same(weighted, clone(model).fit(X[kept], y[kept]), X, 1e-9)


SMALL = gaussian_bank([0.1, 1.0], relative=True, dtype="float64")
COSTS = {"Cs": [1.0, 10.0], "cv": 2}
SEARCHES = [
    ShareBoostClassifierCV(3, alpha=1e-3, cv=3, options=EXACT),
    ShareBoostRegressorCV(3, alpha=1e-3, cv=3, options=EXACT),
    MixedNormClassifierCV(alphas=3, cv=2, tol=1e-10),
    MixedNormRegressorCV(alphas=3, cv=2, tol=1e-10),
    MultiTaskLearnerCV(alphas=3, cv=2, tol=1e-10),
    MKLRegressorCV(SMALL, ps=[1.2], **COSTS, **FINE),
    MKLClassifierCV(SMALL, ps=[1.2], **COSTS, **FINE),
    ConvMKLClassifierCV(SMALL, ps=[1.2], tails=[2], **COSTS, **FINE),
    SMSDMKLClassifierCV(SMALL, betas=[1e-2], tails=[2], **COSTS, **FINE),
    UFOMKLClassifierCV(SMALL, betas=[1e-3], **COSTS, **FINE),
    TensorKernelRegressorCV(gammas=3, cv=2),
    TensorKernelClassifierCV(gammas=3, cv=2),
]
SEARCHES += others(SEARCHES, searching=True)


@pytest.mark.parametrize("model", SEARCHES, ids=lambda model: type(model).__name__)
def test_rows_without_weight_are_in_no_fold(model):
    X, y = rows_of("none", model)
    kept = np.random.default_rng(1).random(len(X)) < 0.7
    weighted = clone(model).fit(X, y, sample_weight=kept.astype(float))
    cut = clone(model).fit(X[kept], y[kept])
    assert weighted.best_score_ == pytest.approx(cut.best_score_, abs=1e-6)
    assert_same(weighted, cut, X)
