r"""
Six views of a digit
====================

The handwritten digits of the dataset mfeat have six views: Fourier coefficients of
their shapes, correlations of profiles, Karhunen-Loève coefficients, pixel averages, Zernike
moments, and six morphological numbers. Each view has its own kernels, and the learners weight them.
With few training rows no single view is enough.

The example answers two questions: how much does the sum of the kernels gain, and how much do the
weights gain?
"""

# %%
# :func:`mixnorm.datasets.load` reads the dataset from the folder that ``MIXNORM_DATA`` names.
# If there is no such file, synthetic views are used instead, each of which confuses some of the
# classes. The comments below are about mfeat.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixnorm import (
    ConvMKLClassifier,
    KernelMulticlassSVC,
    MKLClassifier,
    SMSDMKLClassifier,
    UFOMKLClassifier,
    datasets,
)
from mixnorm.exceptions import DatasetNotFoundError
from mixnorm.kernels import GaussianKernel, KernelBank


def make_views(n_samples, rng):
    """Return rows, labels and the columns of six synthetic views of ten classes."""
    y = rng.permutation(np.arange(n_samples) % 10)
    parts, views, first = [], {}, 0
    sizes = {"A": (40, 4), "B": (60, 8), "C": (30, 6), "D": (60, 8), "E": (25, 4), "F": (6, 3)}
    for name, (width, n_groups) in sizes.items():
        centres = rng.normal(size=(n_groups, width))
        group = rng.permutation(10)[y] % n_groups
        parts.append(centres[group] + rng.normal(scale=3.0, size=(n_samples, width)))
        views[name] = slice(first, first + width)
        first += width
    return np.concatenate(parts, axis=1), y, views


try:
    data = datasets.load("mfeat", download_if_missing=False)
    X, y = data.X, data.y
    ends = data.view_offsets.tolist()
    views = {str(name): slice(*ends[v : v + 2]) for v, name in enumerate(data.view_names)}
except DatasetNotFoundError:
    X, y, views = make_views(2_000, np.random.default_rng(0))
for name, columns in views.items():
    print(f"{name}: {columns.stop - columns.start:3d} columns")

# %%
# A bank per view
# ---------------
# Every view has two Gaussian kernels. Their widths are relative to the distances between rows in
# that view, so that a view of six columns and one of 240 are treated alike. The bank scales the
# columns.

WIDTHS = [GaussianKernel(0.25, relative=True), GaussianKernel(1.0, relative=True)]


def bank_of(views):
    """Return the kernels of some views."""
    return KernelBank.from_columns(StandardScaler(), views, WIDTHS)


def learners(bank):
    """Return all learners over a bank, at their defaults, and the average of its kernels."""
    return {
        "average": MKLClassifier(bank, p=np.inf),
        "p = 2": MKLClassifier(bank, p=2.0),
        "p = 1.2": MKLClassifier(bank, p=1.2),
        "p = 1": MKLClassifier(bank, p=1.0),
        "UFO": UFOMKLClassifier(bank),
        "Conv": ConvMKLClassifier(bank),
        "SMSD": SMSDMKLClassifier(bank),
    }


def draws(y, n_draws=5, per_class=20):
    """Yield training and test rows, with ``per_class`` training rows of each class."""
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        train = [rng.choice(np.flatnonzero(y == k), per_class, replace=False) for k in np.unique(y)]
        train = np.concatenate(train)
        yield train, np.setdiff1d(np.arange(len(y)), train)


def single_errors(X, y, views):
    """Return the test error of each view alone with its better kernel: (views, draws)."""
    errors = np.ones((len(views), len(WIDTHS), 5))
    for draw, (train, test) in enumerate(draws(y)):
        for v, columns in enumerate(views.values()):
            for w, kernel in enumerate(WIDTHS):
                machine = make_pipeline(StandardScaler(), KernelMulticlassSVC(kernel=kernel))
                machine.fit(X[train, columns], y[train])
                errors[v, w, draw] = 1 - machine.score(X[test, columns], y[test])
    best = np.argmin(errors.mean(axis=2), axis=1)
    return errors[np.arange(len(views)), best]


def run(X, y, views):
    """Return errors (draws) and fractions of the weight by view (draws, views) of every learner."""
    errors, shares = {}, {}
    for train, test in draws(y):
        for name, model in learners(bank_of(views)).items():
            model.fit(X[train], y[train])
            errors.setdefault(name, []).append(1 - model.score(X[test], y[test]))
            weights = model.kernel_weights_.reshape(len(views), -1).sum(axis=1)
            shares.setdefault(name, []).append(weights / weights.sum())
    return {k: np.array(v) for k, v in errors.items()}, {k: np.array(v) for k, v in shares.items()}


alone = dict(zip(views, single_errors(X, y, views), strict=True))
errors, shares = run(X, y, views)
for name, found in (alone | errors).items():
    print(f"{name:8s} {100 * found.mean():5.1f} % (sd {100 * found.std(ddof=1):.1f})")

# %%
# All views together have less than half the error of the best single view. The weights
# are not the reason: all views are useful, and the average is as good as any learner.
#
# Conv-MKL and SMSD-MKL, at their defaults, are worse than the average. They use tail sums, which
# are small for views of few columns. Most of the weight goes to the smallest view, which is the
# worst one alone. Tail sums are meant for comparing the widths of one metric. They do not depend on
# the labels, and do not measure the quality of views. (``SMSDMKLClassifierCV`` and
# ``ConvMKLClassifierCV`` notice this, and choose parameters that give tail sums the least
# influence.)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
shown = alone | errors
place = np.arange(len(shown))[::-1]
left.barh(
    place,
    [100 * found.mean() for found in shown.values()],
    xerr=[100 * found.std(ddof=1) for found in shown.values()],
    color=["0.75"] * len(alone) + ["tab:blue"] * len(errors),
)
left.set(yticks=place, yticklabels=list(shown), xlabel="Test error (%), 20 training rows per class")

height = 0.8 / len(views)
place = np.arange(len(shares))[::-1]
for v, view in enumerate(views):
    part = [share[:, v].mean() for share in shares.values()]
    right.barh(place + 0.4 - (v + 0.5) * height, part, height, label=view)
right.set(yticks=place, yticklabels=list(shares), xlabel="Share of the weight")
right.legend(title="view")
plt.show()

# %%
# Views of noise
# --------------
# Weights are useful if some kernels do not help. This part adds twelve views of noise: the same
# columns with shuffled rows, which carry no information about the digit.

rng = np.random.default_rng(0)
tables, crowd = [X], dict(views)
for copy in (1, 2):
    shuffled = [X[rng.permutation(len(X)), columns] for columns in views.values()]
    tables.append(np.concatenate(shuffled, axis=1))
    offset = copy * X.shape[1]
    for name, columns in views.items():
        crowd[f"{name} {copy}"] = slice(columns.start + offset, columns.stop + offset)

crowd_errors, crowd_shares = run(np.concatenate(tables, axis=1), y, crowd)
for name, found in crowd_errors.items():
    true = crowd_shares[name][:, : len(views)].sum(axis=1).mean()
    print(f"{name:8s} {100 * found.mean():4.1f} %, {true:4.0%} of the weight on the true views")

# %%
# The error of the average is now larger by half, because two thirds of the kernels are noise.
# Learners with a small p find the true views, and are about as good as before. With p = 1 no view
# of noise has any weight. For Conv-MKL and SMSD-MKL a small view and its shuffled copies have the
# same tail sums, and these learners lose more.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained", sharey=True)
place = np.arange(len(errors))[::-1]
for shift, found, label in (
    (0.2, errors, "six views"),
    (-0.2, crowd_errors, "plus noise"),
):
    left.barh(
        place + shift,
        [100 * one.mean() for one in found.values()],
        0.4,
        xerr=[100 * one.std(ddof=1) for one in found.values()],
        label=label,
    )
left.set(yticks=place, yticklabels=list(errors), xlabel="Test error (%)")
left.legend(loc="center right")
right.barh(place, [share[:, : len(views)].sum(axis=1).mean() for share in crowd_shares.values()])
right.axvline(1 / 3, color="k", linestyle=":")
right.set(xlabel="Share of the weight on the true views (dotted: equal weights)")
plt.show()
