r"""
Features needed as classes grow
===============================

This example uses the first family of data in the ShareBoost paper's Appendix C: a row of class
:math:`y` is :math:`x = [\mathrm{bin}(y),\, 2 \log_2(k)\, e_y]`. The :math:`\log_2 k` bits are
enough to separate all :math:`k` classes, if the classes share them. Each of the other :math:`k`
columns indicates one class, and is larger. Penalties on single weights, l1 or l2, prefer those
columns. ShareBoost counts features, and chooses the bits.

The columns are used without scaling. Scaled to the same size, the indicators lose their advantage
and the l1 and l2 penalties find the bits too.
"""

# %%
# For each number of classes, how many features does a model need to classify every
# training row correctly? For ShareBoost the path gives the number. From the regularised models, the
# features with the largest weights are kept, as many as are needed.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from mixnorm import GreedyOptions, ShareBoostClassifier
from mixnorm.datasets import make_shared_bits


def shareboost_needs(X, y, limit):
    model = ShareBoostClassifier(
        limit, alpha=1e-6, options=GreedyOptions(rule="l1", scale=False)
    ).fit(X, y)
    for size, guess in enumerate(model.staged_predict(X), start=1):
        if np.array_equal(guess, y):
            return size
    return np.nan


def regularised_needs(X, y, l1_ratio):
    solver = "saga" if l1_ratio else "lbfgs"
    model = LogisticRegression(l1_ratio=l1_ratio, solver=solver, C=1.0, tol=1e-2, random_state=0)
    model.fit(X, y)
    largest_first = np.argsort(-np.abs(model.coef_).max(axis=0))
    for size in range(1, X.shape[1] + 1):
        kept = largest_first[:size]
        scores = X[:, kept] @ model.coef_[:, kept].T + model.intercept_
        if np.array_equal(scores.argmax(axis=1), y):
            return size
    return np.nan


classes = [16, 32, 64, 128, 256]
needed = {"ShareBoost": [], "l1 logistic regression": [], "l2 logistic regression": []}
for k in classes:
    X, y = make_shared_bits(k, n_samples=3 * k, random_state=0)
    needed["ShareBoost"].append(shareboost_needs(X, y, limit=2 * k.bit_length()))
    needed["l1 logistic regression"].append(regularised_needs(X, y, l1_ratio=1))
    needed["l2 logistic regression"].append(regularised_needs(X, y, l1_ratio=0))

for name, counts in needed.items():
    print(f"{name:24s}", counts)

# %%
# ShareBoost needs about :math:`\log_2 k` features, the others about :math:`k`.

fig, ax = plt.subplots()
for name, counts in needed.items():
    ax.plot(classes, counts, marker="o", label=name)
ax.plot(classes, np.log2(classes), "k:", label="$\\log_2 k$")
ax.plot(classes, classes, "k--", label="$k$")
ax.set(xscale="log", yscale="log", xlabel="Number of classes $k$", ylabel="Features needed")
ax.set_xticks(classes, labels=[str(k) for k in classes])
ax.minorticks_off()
ax.legend()
plt.show()
