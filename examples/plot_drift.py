r"""
When the data change: the error of the latest rows
==================================================

Online learners predict each row before they learn from it. The error of the latest rows therefore
shows at once when the rule behind a stream changes, and how fast the learner adapts. The error of
all rows so far hides both. The rows are raw here: kelvin, pascals and volts, neither centred nor
scaled.
"""

# %%
# A machine is in one of three states. Three instruments measure it, and their readings determine
# the state, apart from some noise. Half-way through the stream the three states are exchanged.

import matplotlib.pyplot as plt
import numpy as np

from mixnorm import GroupPerceptron, MirrorDescentClassifier

rng = np.random.default_rng(0)
n_rows, change = 8000, 4000
noise = rng.standard_normal((n_rows, 3))
X = [293.0, 101_300.0, 0.002] + noise * [4.0, 800.0, 0.0005]
rule = np.array([[1.0, -1.0, 0.0], [-0.5, 0.5, 1.0], [-0.5, 0.5, -1.0]])
state = np.argmax(noise @ rule.T + 0.3 * rng.standard_normal((n_rows, 3)), axis=1)
y = np.where(np.arange(n_rows) < change, state, (state + 1) % 3)

# %%
# ``partial_fit`` keeps the order of rows, and predicts each row before it learns from it. The
# mistakes in a batch are the difference of ``mistakes_``. The guess for comparison is the class
# that was the commonest before the batch.

batch = 100


def recent_errors(model, X, y):
    """Return the share of rows predicted wrong in each batch."""
    mistakes = [0]
    for end in range(batch, len(y) + 1, batch):
        rows = slice(end - batch, end)
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        mistakes.append(model.mistakes_)
    return np.diff(mistakes) / batch


def guess_errors(y):
    """Return the same for always guessing the commonest class so far."""
    counts, found = np.zeros(3), []
    for end in range(batch, len(y) + 1, batch):
        labels = y[end - batch : end]
        found.append(np.mean(labels != np.argmax(counts)))
        counts += np.bincount(labels, minlength=3)
    return np.array(found)


mirror = MirrorDescentClassifier()
perceptron = GroupPerceptron(scale=True)
by_rule = {
    "mirror descent": recent_errors(mirror, X, y),
    "group perceptron": recent_errors(perceptron, X, y),
    "commonest class": guess_errors(y),
}
for model in (mirror, perceptron):
    print(f"{type(model).__name__}: {model.mistakes_ / n_rows:.1%} of all rows wrong")

# %%
# A change of units is different. Here the rule stays the same, but from row 4,001 on the readings
# are in degrees Fahrenheit, millimetres of mercury and millivolts. Columns may be in any units, but
# the units must not change, because the learner computes means and units from all rows so far and
# forgets none. The error stays high. A new model needs 200 rows to be as good as the old one was.

U = X.copy()
U[change:] = X[change:] * [1.8, 1 / 133.322, 1000.0] - [459.67, 0.0, 0.0]
kept = recent_errors(MirrorDescentClassifier(), U, state)
fresh = recent_errors(MirrorDescentClassifier(), U[change:], state[change:])

by_units = {
    "mirror descent": kept,
    "a new model after the change": np.concatenate([np.full(change // batch, np.nan), fresh]),
    "commonest class": guess_errors(state),
}

fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
titles = ["The rule changes", "The units change"]
for ax, title, curves in zip(axes, titles, [by_rule, by_units], strict=True):
    for name, errors in curves.items():
        style = ":" if name == "commonest class" else "-"
        ax.plot(np.arange(1, len(errors) + 1) * batch, errors, style, label=name)
    ax.axvline(change, color="grey", linewidth=0.8)
    ax.set(title=title, xlabel="Rows", xlim=(0, n_rows), ylim=(0, 1))
    ax.legend(frameon=False)
axes[0].set(ylabel=f"Error of the last {batch} rows")
fig.tight_layout()
plt.show()
