"""
Digits from a few patches
=========================

An atom of :class:`~mixnorm.pools.Patches` is a small template with a place. It measures how
strongly a stroke matches at or near that place. All ten digits share the chosen atoms. One fit
gives the errors for every number of atoms, and each atom can be drawn. :doc:`/user_guide/images`
has the details.
"""

# %%
# :func:`mixnorm.datasets.load` reads MNIST from the folder that ``MIXNORM_DATA`` names. The example
# uses 3,000 of its training images, and all 10,000 test images. If there is no such file, the
# small digits of scikit-learn are used instead, with smaller patches. The comments below are about
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
# Upright and deformed images
# ---------------------------
# :func:`~mixnorm.datasets.deslant_images` takes out the slant of the writing, which depends on the
# writer and not on the digit. :func:`~mixnorm.datasets.deform_images` makes more images from the
# existing ones: each copy is turned, stretched and bent a little, at random. The figure shows some
# images as they are, upright, and two copies of each.

upright, test_upright = datasets.deslant_images(images), datasets.deslant_images(test)
copies = datasets.deform_images(upright, n_copies=2, random_state=0, **amounts)

n_shown = 10
rows = {
    "original": images[:n_shown],
    "upright": upright[:n_shown],
    "copy 1": copies[:n_shown],
    "copy 2": copies[len(images) : len(images) + n_shown],
}
fig, axes = plt.subplots(len(rows), n_shown, figsize=(8, 3.4), layout="constrained")
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(line, pictures, strict=True):
        ax.imshow(picture, cmap="Greys")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
plt.show()

# %%
# Error by number of atoms
# ------------------------
# Images are given as arrays ``(n_samples, height, width)``. The templates are learned from them:
# they are the centres that k-means finds among their patches. Then 60 atoms are chosen out of all
# pairs of a template and one of 16 places.

trained = {
    "original": (images, y, test),
    "upright": (upright, y, test_upright),
    "upright, with copies": (np.concatenate([upright, copies]), np.tile(y, 3), test_upright),
}
models, errors = {}, {}
for name, (X, labels, X_test) in trained.items():
    model = ShareBoostClassifier(60, pool=pool, alpha=1e-5, random_state=0).fit(X, labels)
    models[name] = model
    errors[name] = [100 * np.mean(guess != y_test) for guess in model.staged_predict(X_test)]
    shown = ", ".join(f"{errors[name][size - 1]:.1f} ({size})" for size in (10, 20, 40, 60))
    print(f"{name:20s} test error in % (number of atoms): {shown}")

fig, ax = plt.subplots(layout="constrained")
for name, curve in errors.items():
    ax.plot(np.arange(1, len(curve) + 1), curve, label=name)
ax.set(xlabel="Number of atoms", ylabel="Test error (%)", yscale="log")
ax.set_yticks([2, 5, 10, 20, 50], labels=["2", "5", "10", "20", "50"])
ax.minorticks_off()
ax.legend(title="Training images")
plt.show()

# %%
# Upright images need fewer atoms. Copies lower the error of models of 40 atoms and
# more further, and hardly change that of smaller models (this also holds with other seeds).

# %%
# The chosen patches
# ------------------
# Each of the first twelve atoms has three pictures: the template, light where it expects ink and
# dark where it expects none; the mask, over the mean image; and the contribution of its largest
# response to the score of each digit. A long bar upward is evidence for a digit, a long bar
# downward evidence against it.

PatchDisplay.from_estimator(models["upright"], upright, name="The first twelve of 60 patches")
plt.show()

# %%
# Cost of a prediction
# --------------------
# A template is compared with the image only where its mask is not zero. The number of multiply-adds
# per image is therefore known beforehand, and the smaller models of the path cost less in
# proportion.

for size in (10, 20, 40, 60):
    cost = models["upright"].truncate(size).cost_
    print(f"{size} atoms: {cost.multiply_adds / 1000:.0f} thousand multiply-adds per image")
