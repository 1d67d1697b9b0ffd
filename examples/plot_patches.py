"""
Digits from a few patches
=========================

A feature of :class:`~mixnorm.pools.Patches` is a small template and a place: how strongly is this
stroke found there, or near? All ten digits share the features that are chosen. One fit gives the
curve of errors against their number, and each of them can be looked at.
:doc:`/user_guide/images` says more.
"""

# %%
# MNIST is read by :func:`mixnorm.datasets.load`, from the folder that ``MIXNORM_DATA`` names; here
# are 3,000 of its training images, and all 10,000 test images. Where there is no such file, the
# small digits of scikit-learn stand in for it, with smaller patches. What is said below is about
# MNIST.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mixnorm import ShareBoostClassifier, datasets
from mixnorm.display import PatchDisplay
from mixnorm.exceptions import DatasetNotFoundError
from mixnorm.pools import Patches

try:
    data = datasets.load("mnist", download_if_missing=False)
    images, y = data.X[:3_000], data.y[:3_000]
    test, y_test = data.X_test, data.y_test
    pool, amounts = Patches(size=7, n_templates=250, masks=16), {}
except DatasetNotFoundError:
    data = load_digits()
    images, y = data.images[:1_200], data.target[:1_200]
    test, y_test = data.images[1_200:], data.target[1_200:]
    pool, amounts = Patches(size=3, n_templates=100, masks=9), {"elastic": 0.3, "smoothness": 2.0}
print(f"{len(images)} training images of {images.shape[1]} x {images.shape[2]} pixels")

# %%
# Upright, and deformed
# ---------------------
# :func:`~mixnorm.datasets.deslant_images` takes out the slant of the writing, which says who wrote
# and not what. :func:`~mixnorm.datasets.deform_images` makes more images of those there are:
# turned, stretched and bent a little, each copy in a way of its own. Here are some images as they
# come, upright, and two copies of each.

upright, test_upright = datasets.deslant_images(images), datasets.deslant_images(test)
copies = datasets.deform_images(upright, n_copies=2, random_state=0, **amounts)

shown = 10
rows = {
    "given": images[:shown],
    "upright": upright[:shown],
    "copy": copies[:shown],
    "another": copies[len(images) : len(images) + shown],
}
fig, axes = plt.subplots(len(rows), shown, figsize=(8, 3.4), layout="constrained")
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(line, pictures, strict=True):
        ax.imshow(picture, cmap="Greys")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
plt.show()

# %%
# How many features, how many errors
# ----------------------------------
# Images go in as they are, ``(n_samples, height, width)``. The templates are learned from them: the
# centres that k-means finds among their patches. Then 60 features are chosen out of all pairs of a
# template and one of 16 places.

trained = {
    "as given": (images, y, test),
    "upright": (upright, y, test_upright),
    "and copies": (np.concatenate([upright, copies]), np.tile(y, 3), test_upright),
}
models, errors = {}, {}
for name, (X, labels, X_test) in trained.items():
    model = ShareBoostClassifier(60, pool=pool, alpha=1e-5, random_state=0).fit(X, labels)
    models[name] = model
    errors[name] = [100 * np.mean(guess != y_test) for guess in model.staged_predict(X_test)]
    told = ", ".join(f"{errors[name][size - 1]:.1f} ({size})" for size in (10, 20, 40, 60))
    print(f"{name:10s} test error in % (features): {told}")

fig, ax = plt.subplots(layout="constrained")
for name, curve in errors.items():
    ax.plot(np.arange(1, len(curve) + 1), curve, label=name)
ax.set(xlabel="Number of features", ylabel="Test error (%)", yscale="log")
ax.set_yticks([2, 5, 10, 20, 50], labels=["2", "5", "10", "20", "50"])
ax.minorticks_off()
ax.legend(title="Training images")
plt.show()

# %%
# Images that stand upright need fewer features. Copies lower the error of models of 40 features and
# more once again, and that of smaller ones hardly (so it is with other seeds, too).

# %%
# What was chosen
# ---------------
# Three pictures for each of the first twelve: the template, light where it wants ink and dark where
# it wants none; where it is looked for, over the mean image; and what its largest response adds to
# the score of each digit. A long bar upward is evidence for a digit, one downward against it.

PatchDisplay.from_estimator(models["upright"], upright, name="The first twelve of 60 patches")
plt.show()

# %%
# What it costs
# -------------
# A template is compared with the image only where its mask is not zero. That makes a number of
# multiply-adds per image that can be told beforehand, and the smaller models of the path cost less
# in proportion.

for size in (10, 20, 40, 60):
    cost = models["upright"].truncate(size).cost_
    print(f"{size} features: {cost.multiply_adds / 1000:.0f} thousand multiply-adds per image")
