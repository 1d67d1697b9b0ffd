r"""
Between ridge and lasso
=======================

All monomials up to degree 3 of 12 columns are 455 features, and there are 150 rows. The penalty on
the weights decides what is learned: ridge regression spreads them over all features, and the lasso
keeps a few. A tensor kernel learns with the penalty :math:`\frac1p \|w\|_p^p` for
:math:`1 < p < 2`. It does not compute the features, so there may be too many of them to compute, or
infinitely many.

This page first compares errors by :math:`p` on three targets. Then it shows the weights along
``gamma``, and a kernel of the monomials of all degrees.
"""

# %%
# The targets are polynomials of degree 3 plus noise of a quarter of their variance. One has four
# monomials. The others have all 455: one with normal weights, and one with cubes of normal
# numbers, a few of which are much larger than the rest.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixnorm import TensorKernelRegressor, TensorKernelRegressorCV
from mixnorm.kernels import ExponentialTensorKernel, PolynomialTensorKernel

KERNEL = PolynomialTensorKernel(degree=3)


def four(X, rng):
    """Return a sum of four monomials."""
    a, b, c, d, e, f, g = X[:, :7].T
    return 2.0 * a * b - 1.5 * c * d * e + 0.7 * f**3 + g


def uneven(X, rng):
    """Return a sum of all monomials, some of which have large weights."""
    features = KERNEL.features(X, q=4)
    return rng.standard_normal(len(features)) ** 3 @ features


def even(X, rng):
    """Return a sum of all monomials, with weights of similar size."""
    features = KERNEL.features(X, q=4)
    return rng.standard_normal(len(features)) @ features


def draw(target, seed, n_train=150, n_test=1000):
    """Return rows and noisy targets, to train with and to test with."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_train + n_test, 12))
    y = target(X, rng)
    y = y / np.std(y) + 0.5 * rng.standard_normal(len(y))
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def error(prediction, y):
    """Return the mean squared error, as a fraction of the variance of the targets."""
    return np.mean((prediction - y) ** 2) / np.var(y)


# %%
# Ridge and lasso get the same features, of standardised columns. Penalties are chosen by five-fold
# cross-validation on the training rows. ``q`` is the exponent of the dual norm,
# :math:`p = q / (q - 1)`.

EXPONENTS = (3, 4, 6, 8)


def fit_linear(model, X, y, X_test):
    """Fit a linear model to the features; return predictions."""
    scaler = StandardScaler().fit(X)
    train, test = (KERNEL.features(scaler.transform(part), q=4).T for part in (X, X_test))
    return model.fit(train, y).predict(test)


def errors_of(X, y, X_test, y_test):
    """Return the test errors of ridge, of tensor kernels and of the lasso."""
    found = [fit_linear(RidgeCV(np.geomspace(1e-2, 1e5, 25), cv=5), X, y, X_test)]
    for q in EXPONENTS:
        model = TensorKernelRegressorCV(KERNEL, q=q, gammas=20, cv=5).fit(X, y)
        found.append(model.predict(X_test))
    lasso = LassoCV(alphas=25, cv=5, max_iter=5000, tol=1e-3)
    found.append(fit_linear(lasso, X, y, X_test))
    return [error(prediction, y_test) for prediction in found]


N_DRAWS = 3
names = ["ridge", *(f"q = {q}" for q in EXPONENTS), "lasso"]
errors = {}
for target in (four, uneven, even):
    draws = [errors_of(*draw(target, seed)) for seed in range(N_DRAWS)]
    errors[target.__name__] = np.mean(draws, axis=0)
    row = zip(names, errors[target.__name__], strict=True)
    print(f"{target.__name__:6s}  " + ", ".join(f"{name}: {value:.2f}" for name, value in row))

# %%
# With four monomials the error falls all the way from ridge to the lasso, and with even weights it
# rises. With weights of uneven size, an exponent in between is best, by a little. ``q = 4`` is
# never far from the best. If the target has only a handful of features, and all features can be
# listed, use the lasso.

powers = [2.0, *(q / (q - 1) for q in EXPONENTS), 1.0]
titles = {
    "four": "Four monomials",
    "uneven": "All monomials, uneven weights",
    "even": "All monomials, even weights",
}
fig, panels = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for axes, (name, found) in zip(panels, errors.items(), strict=True):
    axes.plot(powers, found, marker="o")
    axes.set(title=titles[name], xlabel="p", xlim=(2.05, 0.95))
panels[0].set_ylabel("Test error / variance")
plt.show()

# %%
# The weights
# -----------
# This part uses the target of four monomials again, with ``q = 4``. ``features`` lists monomials by
# their fractions of :math:`\|w\|_p^p`, which add up to one.

MEANT = ["x0 x1", "x2 x3 x4", "x5^3", "x6"]
X, y, X_test, y_test = draw(four, 0)
search = TensorKernelRegressorCV(KERNEL, gammas=25, cv=5).fit(X, y)
print(f"gamma {search.gamma_:.3g}, error {error(search.predict(X_test), y_test):.2f}")
for feature in search.features(top=8):
    print(f"{feature.share:6.3f}  {feature.weight:7.3f}  {feature.name}")

# %%
# Three of the four come first, with 40 per cent of the norm between them. Instead of the fourth,
# ``x6``, the list has ``x6^3`` and products with ``x6``, which are larger and on 150 rows similar
# to it. No weight is zero.
#
# The left figure shows all weights by ``gamma``: at 0.01 nothing is fitted, at 10,000 everything
# is, including noise. The right figure shows their sizes by rank: at :math:`p = 4/3` they fall from
# the first on, with ridge they are similar, and with the lasso they end.

path = []
for gamma in search.gammas_:
    model = TensorKernelRegressor(KERNEL, gamma=gamma).fit(X, y)
    path.append({feature.name: feature.weight for feature in model.features(top=455)})
features = KERNEL.features(StandardScaler().fit_transform(X), q=4).T
found = {
    "ridge": RidgeCV(np.geomspace(1e-2, 1e5, 25), cv=5).fit(features, y).coef_,
    "p = 4/3": [feature.weight for feature in search.features(top=455)],
    "lasso": LassoCV(alphas=25, cv=5, max_iter=5000, tol=1e-3).fit(features, y).coef_,
}

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name in path[0]:
    style = {"label": name, "zorder": 3} if name in MEANT else {"color": "0.8", "linewidth": 0.5}
    left.plot(search.gammas_, [weights[name] for weights in path], **style)
left.axvline(search.gamma_, color="k", linestyle=":", label="chosen")
left.set(xscale="log", xlabel="gamma", ylabel="Weight")
left.legend()
for name, weights in found.items():
    sizes = np.sort(np.abs(weights))[::-1]
    right.plot(np.arange(1, 456), sizes / sizes[0], label=name)
right.set(xscale="log", yscale="log", ylim=(1e-5, 1.5), xlabel="Rank")
right.set_ylabel("Size of the weight / largest")
right.legend()
plt.show()

# %%
# Infinitely many features
# ------------------------
# The exponential kernel has the monomials of all degrees, which no lasso can use. Here the model
# draws those that hold nearly all of the kernel; ``kernel_mass_`` is the fraction that they hold.
# With ``q = 2`` the kernel would be a Gaussian, so ridge regression with a Gaussian kernel is the
# case :math:`p = 2`.

gaussian = GridSearchCV(
    make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")),
    {
        "kernelridge__gamma": np.geomspace(1e-3, 0.3, 8),
        "kernelridge__alpha": np.geomspace(1e-3, 10.0, 8),
    },
    cv=5,
)
endless = TensorKernelRegressorCV(
    ExponentialTensorKernel(sigma=0.02),
    gammas=20,
    cv=5,
    representation="sampled",
    random_state=0,
)
for seed in range(N_DRAWS):
    X, y, X_test, y_test = draw(four, seed)
    ridge = gaussian.fit(X, y - y.mean()).predict(X_test) + y.mean()
    tensor = endless.fit(X, y).predict(X_test)
    print(
        f"Gaussian ridge {error(ridge, y_test):.2f}, "
        f"exponential tensor kernel {error(tensor, y_test):.2f} "
        f"(mass {endless.kernel_mass_:.3f})"
    )
for feature in endless.features(top=5):
    print(f"{feature.share:6.3f}  {feature.name}")

# %%
# The exponential tensor kernel is the better of the two, and names the monomials it found. The
# kernel of degree 3 had an error of 0.39 on the same draws, so it helps to know the degree.
