r"""
Between ridge and lasso
=======================

All monomials up to degree 3 of 15 columns are 816 features, and there are 100 rows. Which weights
are dear decides what is learned: ridge regression spreads them over all features, the lasso keeps a
few. A tensor kernel learns under :math:`\frac1p \|w\|_p^p` with :math:`p` between the two, without
computing the features where there are too many.

First errors by :math:`p`, on a target of a few monomials and on one of all of them; then the weights
that are found, along ``gamma``; then a kernel of which there is no end of features.
"""

# %%
# Both targets are polynomials of degree 3, with noise of a quarter of their variance. The first has
# four monomials. The second has all 816, their weights drawn at random.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.preprocessing import StandardScaler

from mixnorm import TensorKernelRegressor, TensorKernelRegressorCV
from mixnorm.kernels import ExponentialTensorKernel, PolynomialTensorKernel

KERNEL = PolynomialTensorKernel(degree=3)
MEANT = ["x0 x1", "x2 x3 x4", "x5^3", "x6"]


def few(X, rng):
    """Return a sum of four monomials."""
    return 2.0 * X[:, 0] * X[:, 1] - 1.5 * X[:, 2] * X[:, 3] * X[:, 4] + 0.7 * X[:, 5] ** 3 + X[:, 6]


def many(X, rng):
    """Return a sum of all monomials, with weights drawn at random."""
    features = KERNEL.features(X, q=4)
    return rng.standard_normal(len(features)) @ features


def draw(target, seed, n_train=100, n_test=1000):
    """Return rows and noisy targets, to train with and to test with."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_train + n_test, 15))
    y = target(X, rng)
    y = y / np.std(y) + 0.5 * rng.standard_normal(len(y))
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


# %%
# Ridge and lasso are given the same features, of standardised columns. All penalties are chosen by
# five folds of the training rows.

EXPONENTS = (3, 4, 6, 8)


def fit_linear(model, X, y, X_test):
    """Fit a linear model to the features; return predictions."""
    scaler = StandardScaler().fit(X)
    train, test = (KERNEL.features(scaler.transform(part), q=4).T for part in (X, X_test))
    return model.fit(train, y).predict(test)


def errors_of(X, y, X_test, y_test):
    """Return the test errors from ridge over tensor kernels to the lasso."""
    folds = {"cv": 5}
    found = [fit_linear(RidgeCV(np.geomspace(1e-2, 1e5, 40), **folds), X, y, X_test)]
    for q in EXPONENTS:
        model = TensorKernelRegressorCV(KERNEL, q=q, gammas=30, **folds).fit(X, y)
        found.append(model.predict(X_test))
    found.append(fit_linear(LassoCV(alphas=40, max_iter=5000, tol=1e-3, **folds), X, y, X_test))
    return [np.mean((prediction - y_test) ** 2) / np.var(y_test) for prediction in found]


N_DRAWS = 3
errors = {
    target.__name__: np.mean([errors_of(*draw(target, seed)) for seed in range(N_DRAWS)], axis=0)
    for target in (few, many)
}
names = ["ridge", *(f"q = {q}" for q in EXPONENTS), "lasso"]
for name, *row in zip(names, *errors.values(), strict=True):
    print(f"{name:6s}  few monomials: {row[0]:.2f}   all of them: {row[1]:.2f}")
