r"""
Mistakes in a stream and their bound
====================================

A row :math:`x \in \{\pm 1\}^d` holds the advice of :math:`d` experts. The label is a binary number,
and a few of the experts give its digits. Perceptrons learn this from a stream, row by row. The
group perceptron finds the experts that matter for all classes together. Its mistakes nearly stop,
and stay below the bound that the theory gives for any stream that these experts solve.
"""

# %%
# There are sixteen classes, and four of a thousand experts give the binary digits of the class.

import matplotlib.pyplot as plt
import numpy as np

from mixnorm import GroupPerceptron, MirrorDescentClassifier

rng = np.random.default_rng(0)
n_rounds, n_experts, n_bits = 6000, 1000, 4
X = rng.choice([-1.0, 1.0], size=(n_rounds, n_experts))
y = (X[:, :n_bits] > 0) @ (1 << np.arange(n_bits))

# %%
# The weights that solve the problem have a margin of 2 between the right class and any other.
# Divided by two they have no hinge loss, and give the bound.

codes = 2.0 * (np.arange(16)[:, None] >> np.arange(n_bits) & 1) - 1.0
solution = np.zeros((16, n_experts))
solution[:, :n_bits] = codes / 2.0

learners = {
    "group perceptron": GroupPerceptron("l2,1"),
    "p-norm perceptron": GroupPerceptron("l1,1"),
    "plain perceptron": GroupPerceptron("l2,2"),
    "mirror descent, (2,1)": MirrorDescentClassifier("l2,1", scale=False),
}

fig, ax = plt.subplots(figsize=(7, 4.5))
for name, learner in learners.items():
    learner.partial_fit(X, y)  # in the order of the rows
    curve = learner.curve_
    (line,) = ax.plot(curve["rounds"], curve["mistakes"], label=f"{name}: {learner.mistakes_}")
    if isinstance(learner, GroupPerceptron):
        bound = learner.mistake_bound(solution)
        print(f"{name}: {learner.mistakes_} mistakes, at most {bound:.0f}")
        if bound < n_rounds:
            ax.axhline(bound, color=line.get_color(), linestyle=":", linewidth=1)
ax.set(xlabel="Rows", ylabel="Mistakes so far", xlim=(0, n_rounds), ylim=(0, n_rounds))
ax.legend(frameon=False)
fig.tight_layout()
plt.show()

# %%
# In the weights of the group perceptron, the four experts stand out.

weights = learners["group perceptron"].coef_
sizes = np.sqrt(np.sum(weights**2, axis=0))
ratio = float(np.min(sizes[:n_bits]) / np.max(sizes[n_bits:]))
print(f"each of the four has at least {ratio:.0f} times the weight of any other expert")
