r"""
Choosing a norm by its bound and by its test error
==================================================

This is an example of Kakade, Shalev-Shwartz and Tewari (section 4.1). A row
:math:`x \in \{\pm 1\}^d` holds the advice of :math:`d` experts. The label is a binary number, and
:math:`s = \log_2 k` of the experts give its digits. The bound of a norm is, up to a logarithm, the
norm of weights that solve the problem times the dual norm of the data. It shows which norm suits
these data before anything is fitted, and the fits agree.
"""

# %%
# The weights that solve the problem hold for each class its binary number, as :math:`\pm 1`, on the
# :math:`s` experts, and zero on all others. If :math:`r` is predicted instead of :math:`y`, the
# row enters the bound as the matrix with :math:`x` for the class :math:`y` and :math:`-x` for
# :math:`r`.

import matplotlib.pyplot as plt
import numpy as np

from mixnorm import MixedNormClassifier
from mixnorm.norms import MixedNorm

NORMS = {"(2,1)": MixedNorm(2, 1), "(1,1)": MixedNorm(1, 1), "(2,2)": MixedNorm(2, 2)}


def make_experts(n_samples, n_classes, n_experts, rng):
    """Draw rows and labels; return them and weights that separate all classes."""
    n_bits = n_classes.bit_length() - 1
    codes = 2.0 * (np.arange(n_classes)[:, None] >> np.arange(n_bits) & 1) - 1.0
    y = rng.permutation(np.arange(n_samples) % n_classes)
    X = rng.choice([-1.0, 1.0], size=(n_samples, n_experts))
    X[:, :n_bits] = codes[y]
    weights = np.zeros((n_experts, n_classes))
    weights[:n_bits] = codes.T
    return X, y, weights


def differences(X, y, n_classes):
    """Yield for some rows the matrix of the label's score minus that of another class."""
    for x, label in zip(X[:5], y, strict=False):
        matrix = np.zeros((len(x), n_classes))
        matrix[:, label], matrix[:, label - 1] = x, -x
        yield matrix


# %%
# The bounds
# ----------
# For a norm whose half square is :math:`\beta`-strongly convex, the Rademacher complexity of the
# weights that are no larger than :math:`W` is at most :math:`\|W\| \max \|X\|_* / \sqrt{\beta n}`
# (Theorem 7). The norms (2,1) and (1,1) are not strongly convex. Each has a surrogate, a
# strongly convex norm that is nearly the same; the logarithms come from these surrogates. All
# quantities are measured on the data.


def product(norm, X, y, weights):
    """Return the norm of the weights times the largest dual norm of the data."""
    return norm.value(weights) * max(map(norm.dual, differences(X, y, weights.shape[1])))


def bound(norm, X, y, weights):
    """Return the bound for one row; it falls with the square root of the number of rows."""
    surrogate = norm.surrogate(weights.shape) if hasattr(norm, "surrogate") else norm
    return product(surrogate, X, y, weights) / np.sqrt(surrogate.strong_convexity())


print("Relative to (2,1): products of norms              | bounds")
print("   k      d   (1,1)  sqrt(k/2)   (2,2)  sqrt(d/s) | (1,1)   (2,2)")
for k, d in [(8, 1_000), (16, 1_000), (64, 1_000), (16, 10_000), (16, 100_000)]:
    data = make_experts(k, k, d, np.random.default_rng(0))
    products = {name: product(norm, *data) for name, norm in NORMS.items()}
    bounds = {name: bound(norm, *data) for name, norm in NORMS.items()}
    print(
        f"{k:4d} {d:6d}  {products['(1,1)'] / products['(2,1)']:6.1f} {np.sqrt(k / 2):10.1f}"
        f"  {products['(2,2)'] / products['(2,1)']:6.1f} {np.sqrt(d / np.log2(k)):10.1f} |"
        f"{bounds['(1,1)'] / bounds['(2,1)']:6.1f}  {bounds['(2,2)'] / bounds['(2,1)']:6.1f}"
    )

# %%
# Up to logarithms, (2,1) is better than (1,1) by about :math:`\sqrt k`, because all classes use the
# same experts, and better than (2,2) by :math:`\sqrt{d/s}`, because only a few experts are used.
# The bounds, which include the logarithms, have the same order.
#
# The fits
# --------
# For each norm and number of training rows, a path of penalties is fitted, and one of them is
# chosen on held-out rows.

K, D = 16, 1_000
rng = np.random.default_rng(0)
X_held, y_held, weights = make_experts(1_000, K, D, rng)
X_test, y_test, _ = make_experts(4_000, K, D, rng)


def errors(path, X, y):
    """Return the error of every model of a path."""
    scores = X @ path.coefs.transpose(0, 2, 1) + path.intercepts[:, None, :]
    return np.mean(scores.argmax(axis=2) != y, axis=1)


sizes = [32, 64, 128, 256, 512, 1_024]
found = {name: [] for name in NORMS}
for n in sizes:
    X, y, _ = make_experts(n, K, D, rng)
    for name, norm in NORMS.items():
        path = MixedNormClassifier(norm, tol=1e-3).path(X, y, alphas=12)
        chosen = np.argmin(errors(path, X_held, y_held))
        found[name].append(errors(path, X_test, y_test)[chosen])

for name, curve in found.items():
    print(name, " ".join(f"{100 * error:5.1f} %" for error in curve))

# %%
# The test errors have the order of the bounds: (2,1) needs a few dozen rows, (1,1) several
# times as many, and (2,2) has learned little when the others already make no mistakes. The order
# is visible once there are enough rows for (1,1) to do better than guessing. With 64 rows or fewer
# (1,1) does not, and (2,2) hardly does.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, norm in NORMS.items():
    left.plot(sizes, bound(norm, X, y, weights) / np.sqrt(sizes), label=name)
    right.plot(sizes, found[name], marker="o", label=name)
right.axhline(1 - 1 / K, color="k", linestyle=":", label="guessing")
left.set(xscale="log", yscale="log", xlabel="Training rows", ylabel="Bound")
right.set(xscale="log", xlabel="Training rows", ylabel="Test error")
for ax in (left, right):
    ax.set_xticks(sizes, labels=[str(n) for n in sizes])
    ax.minorticks_off()
left.set_yticks([5, 10, 20, 50], labels=["5", "10", "20", "50"])
right.legend()
plt.show()
