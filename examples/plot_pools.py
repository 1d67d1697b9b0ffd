"""
The boundaries of each pool
===========================

A pool defines the atoms that :class:`~mixnorm.ShareBoostClassifier` chooses from: the features of
the table, or columns made of them. Two problems with two features each show which boundaries the
pools of :mod:`mixnorm.pools` can and cannot draw. :doc:`/user_guide/pools` has the details.
"""

# %%
# Each panel shows the predictions of a model with atoms of one pool, and 400 of the rows it was
# fitted to. The title gives the accuracy on new rows, the number of atoms, and the cost of a
# prediction (multiplications and comparisons).

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from mixnorm import ShareBoostClassifier
from mixnorm.pools import Boxes, Columns, Pieces, Products, Stumps

COLOURS = ListedColormap(["#0072B2", "#E69F00", "#009E73"])
POOLS = [  # a pool, and a number of atoms
    (Columns(), 2),
    (Stumps(), 20),
    (Boxes(), 20),
    (Products(), 3),
    (Pieces(n_centers=200, n_radii=15), 8),
]


def draw(ax, X, y, model=None):
    """Draw points of three classes, and the predictions of a model under them."""
    if model is not None:
        steps = np.linspace(-1, 1, 301)
        grid = np.stack(np.meshgrid(steps, steps), axis=-1)
        guess = model.predict(grid.reshape(-1, 2)).reshape(len(steps), len(steps))
        options = {"cmap": COLOURS, "vmin": 0, "vmax": 2, "alpha": 0.4}
        ax.imshow(guess, origin="lower", extent=(-1, 1, -1, 1), interpolation="nearest", **options)
    ax.scatter(*X[:400].T, c=y[:400], s=4, cmap=COLOURS, vmin=0, vmax=2, linewidths=0)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal")


def compare(label):
    """Fit a model for each pool and draw them all."""
    rng = np.random.default_rng(0)
    X, X_test = rng.uniform(-1, 1, (600, 2)), rng.uniform(-1, 1, (4000, 2))
    y, y_test = label(X), label(X_test)
    _, axes = plt.subplots(2, 3, figsize=(7, 5.5), layout="constrained")
    draw(axes[0, 0], X, y)
    axes[0, 0].set_title("The data", fontsize=10)
    for ax, (pool, size) in zip(axes.flat[1:], POOLS, strict=True):
        model = ShareBoostClassifier(size, pool=pool, alpha=1e-4, random_state=0).fit(X, y)
        draw(ax, X, y, model)
        right = f"{100 * model.score(X_test, y_test):.1f} % correct"
        cost = f"{len(model.path_['feature'])} atoms, {model.cost_.total} operations"
        ax.set_title(f"{type(pool).__name__}: {right}\n{cost}", fontsize=10)
    plt.show()


# %%
# Rings
# -----
# The class depends on the distance from the middle. No straight line separates the rings, so
# ``Columns`` fails. The squared distance is a sum of a function of one feature and a function of
# the other. ``Stumps`` build such sums out of steps, and ``Products`` choose the two squares first.
# ``Boxes`` add up rectangles. ``Pieces`` add up discs, with a linear function on each.


def rings(X):
    """Return the ring that each point lies in."""
    return np.digitize(np.hypot(*X.T), [0.45, 0.85])


compare(rings)

# %%
# Quadrants
# ---------
# Here neither feature is informative alone: the class is the sign of their product. A sum of
# functions of single features cannot separate opposite corners from the others, so ``Stumps`` fail,
# as ``Columns`` do, however many there are. A box has two conditions that hold together, a product
# is exactly the rule, and a disc also uses both features.


def quadrants(X):
    """Return which pair of opposite corners each point lies in."""
    return np.where(X[:, 0] * X[:, 1] > 0, 0, 1)


compare(quadrants)
