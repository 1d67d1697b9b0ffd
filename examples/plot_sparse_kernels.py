r"""
Ten copies of the right kernel
==============================

Suppose there are many kernels, and a model may use only a few of them. One approach is to learn the
weights of all kernels and keep the largest. Jin, Yang and Mahdavi (2013) show an example in which
this fails: copies of a kernel share the weight that a single one would get. Choosing one kernel at
a time avoids the problem.

This page first shows the example, and then the error by the number of chosen kernels.
"""

# %%
# The larger part of the target depends on the first column, the smaller part on the second, and
# each column has one kernel. If only one of the two kernels is kept, it should be the first.

import matplotlib.pyplot as plt
import numpy as np

from mixnorm import GreedyMKLRegressor, GreedyMKLRegressorCV, MKLRegressor
from mixnorm.kernels import GaussianKernel, KernelBank


def draw_two(n_samples, rng):
    """Return rows of two columns, and a target that depends on both of them."""
    X = rng.uniform(-1.0, 1.0, (n_samples, 2))
    y = np.sin(3.0 * X[:, 0]) + 0.3 * np.cos(3.0 * X[:, 1])
    return X, y + 0.1 * rng.standard_normal(n_samples)


def bank_of(*columns):
    """Return one and the same Gaussian kernel on some columns, which may be repeated."""
    return KernelBank([GaussianKernel(1.0, relative=True)] * len(columns), [[c] for c in columns])


TWO, ELEVEN = bank_of(0, 1), bank_of(*[0] * 10, 1)
COLUMN = {2: [0, 1], 11: [0] * 10 + [1]}  # the column that each kernel of a bank uses


def keep_largest(bank, X, y):
    """Weight all kernels, then refit with the one of the largest weight; return both."""
    weights = MKLRegressor(bank, p=1, C=1.0, tol=1e-4).fit(X, y).kernel_weights_
    kept = COLUMN[len(weights)][np.argmax(weights)]
    return weights, kept, GreedyMKLRegressor(bank_of(kept), n_kernels=1).fit(X, y)


def choose_one(bank, X, y):
    """Choose one kernel by its gradient."""
    model = GreedyMKLRegressor(bank, n_kernels=1).fit(X, y)
    return COLUMN[len(model.kernel_names_)][model.selected_kernels_[0]], model


def error(prediction, y):
    """Return the mean squared error, as a fraction of the variance of the targets."""
    return np.mean((prediction - y) ** 2) / np.var(y)


rng = np.random.default_rng(0)
X, y = draw_two(200, rng)
X_test, y_test = draw_two(1000, rng)
weights = {}
for bank in (TWO, ELEVEN):
    found, kept, two_stage = keep_largest(bank, X, y)
    chosen, greedy = choose_one(bank, X, y)
    weights[len(found)] = found
    print(f"{len(found)} kernels: {found[0]:.3f} each for column 0, {found[-1]:.3f} for column 1")
    for name, column, model in (("kept", kept, two_stage), ("chosen", chosen, greedy)):
        print(f"  {name:6s} column {column}, error {error(model.predict(X_test), y_test):.2f}")

# %%
# With eleven kernels the sum of the copies has the weight that the one kernel had. The problem, its
# minimum and the learned function are the same. But there are many ways to split the weight between
# the copies, and the solver finds the symmetric one. Each copy then has less weight than the other
# kernel. The other kernel is kept, and explains almost nothing alone.
#
# The gradient of a kernel does not depend on the number of copies. Other draws give the same
# result:

draws = []
for seed in range(1, 6):
    rng = np.random.default_rng(seed)
    X, y = draw_two(200, rng)
    X_test, y_test = draw_two(1000, rng)
    _, kept, two_stage = keep_largest(ELEVEN, X, y)
    chosen, greedy = choose_one(ELEVEN, X, y)
    errors = [error(model.predict(X_test), y_test) for model in (two_stage, greedy)]
    draws.append([kept == 0, chosen == 0, *errors])
draws = np.array(draws)
for name, right, errors in (("kept", *draws.T[[0, 2]]), ("chosen", *draws.T[[1, 3]])):
    print(f"{name:6s} the right one in {right.sum():.0f} of 5 draws, error {errors.mean():.2f}")

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.2), layout="constrained", sharey=True, width_ratios=[1, 3]
)
for axes, found in zip((left, right), weights.values(), strict=True):
    n_copies = len(found) - 1
    colors = ["tab:blue"] * n_copies + ["tab:orange"]
    axes.bar(np.arange(len(found)), found, color=colors)
    labels = [r"$\kappa_1$"] * n_copies + [r"$\kappa_2$"]
    axes.set(xticks=np.arange(len(found)), xticklabels=labels)
left.set(ylabel="Weight", title="Two kernels")
right.set(title=r"Ten copies of $\kappa_1$")
plt.show()

# %%
# Few kernels out of many
# -----------------------
# This part has 40 columns with Gaussian kernels of three widths each, 300 rows, and a target that
# is a sum of functions of five columns. One run of each algorithm gives the models of all sizes.
# ``"gomp"`` and ``"l1"`` refit all chosen kernels after each choice. ``"l2"`` takes one step, and
# may choose a kernel more than once.


def draw_additive(n_samples, rng):
    """Return rows of 40 columns, and a target that is a sum over five of them."""
    X = rng.uniform(-1.0, 1.0, (n_samples, 40))
    a, b, c, d, e = X[:, :5].T
    y = np.sin(4.0 * a) + 2.0 * b**2 + np.abs(c) + d + np.cos(5.0 * e)
    return X, y + 0.3 * rng.standard_normal(n_samples)


N_DRAWS, MOST = 3, 15
algorithms = {
    "gomp": GreedyMKLRegressor(n_kernels=MOST, alpha=1e-2),
    "l1": GreedyMKLRegressor(n_kernels=MOST, alpha=1e-2, algorithm="l1"),
    "l2, best steps": GreedyMKLRegressor(n_kernels=MOST, algorithm="l2", n_steps=60),
    "l2, unit steps": GreedyMKLRegressor(n_kernels=MOST, algorithm="l2", step="unit", n_steps=60),
}
curves = {name: np.full((N_DRAWS, MOST), np.nan) for name in algorithms}
weighed, n_weighed, found = [], [], 0
for seed in range(N_DRAWS):
    rng = np.random.default_rng(seed)
    X, y = draw_additive(300, rng)
    X_test, y_test = draw_additive(1000, rng)
    for name, model in algorithms.items():
        sizes = model.fit(X, y).path_["n_kernels"]
        for size, prediction in zip(sizes, model.staged_predict(X_test), strict=True):
            curves[name][seed, size - 1] = error(prediction, y_test)  # the last of each size
    found += set(algorithms["gomp"].selected_kernels_[:5] // 3) == {0, 1, 2, 3, 4}
    model = MKLRegressor(KernelBank.per_feature(), p=1, C=1.0).fit(X, y)
    weighed.append(error(model.predict(X_test), y_test))
    n_weighed.append(model.cost_["kernels"])
noise = 0.3**2 / np.var(y_test)

print(f"the first five of gomp are on the five columns in {found} of {N_DRAWS} draws")
for name, curve in curves.items():
    sizes = [size for size in (1, 3, 5, 10, 15) if np.isfinite(curve[:, size - 1]).all()]
    row = "  ".join(f"{size}: {curve[:, size - 1].mean():.3f}" for size in sizes)
    print(f"{name:15s} {row}")
print(f"MKLRegressor(p=1): {np.mean(weighed):.3f}, with {np.mean(n_weighed):.0f} kernels")

# %%
# The first five kernels of ``"gomp"`` are those of the five columns, and with them the error is
# close to the noise. Further kernels fit noise, and the error rises again, with these penalties
# less for ``"l1"``. Weighting all kernels is about as good here, and needs no number of kernels.
# The steps of ``"l2"`` follow the same course more slowly: at the right end of its curve it has
# used all 60 steps.

fig, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, curve in curves.items():
    reached = np.isfinite(curve).all(axis=0)
    axes.plot(1 + np.flatnonzero(reached), curve[:, reached].mean(axis=0), marker=".", label=name)
axes.axhline(np.mean(weighed), color="0.5", linestyle="--", label="all kernels weighted, p = 1")
axes.axhline(noise, color="k", linestyle=":", label="noise")
axes.set(xlabel="Number of kernels", ylabel="Test error / variance", yscale="log")
axes.legend()
plt.show()

# %%
# Cross-validation chooses the number of kernels. It fits one path per fold, which has the models of
# all sizes, and scores them on the held-out rows. The best size often includes a kernel or two that
# fit noise. The rule of one standard error takes the fewest kernels that are nearly as good.

search = GreedyMKLRegressorCV(n_kernels=MOST, alpha=1e-2)
for rule in (False, True):
    chosen = search.set_params(one_standard_error=rule).fit(X, y)
    size = chosen.best_params_["n_kernels"]
    print(f"one standard error: {rule!s:5s}  {size} kernels, ", end="")
    print(f"test error {error(chosen.predict(X_test), y_test):.3f}")

results = search.cv_results_
fig, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
sizes, mean = results["param_n_kernels"], results["mean_test_score"]
axes.errorbar(sizes, mean, results["standard_error"], marker=".", capsize=3)
axes.axvline(search.best_params_["n_kernels"], color="0.5", linestyle="--", label="chosen")
axes.set(xlabel="Number of kernels", ylabel="Held-out R²")
axes.legend(loc="lower right")
plt.show()
