"""Digits and capitals of Chars74K as a table of patches, for the paper's Figure 2.

The stored images have 20 x 20 grey pixels. The first 36 classes have 4,593 images, and 30 % of each
class are the test part. Characters may be darker or brighter than their background. Every image is
therefore standardised to mean zero and variance one, and inverted if its border is brighter than
the mean. Templates are learned once, from the training images of all classes without their labels,
so that all methods and all subsets of the classes get the same columns.
"""

from __future__ import annotations

import numpy as np

CLASSES = 36
SIZE, TEMPLATES, MASKS = 7, 1000, 16
BORDER = 2  # pixels


def make_patches(rows: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training and test part with a column per patch; ``rows`` limits the rows."""
    from sklearn.model_selection import train_test_split

    from mixnorm import datasets

    stored = datasets.load("chars74k_kaggle")
    kept = stored.y < CLASSES
    images, y = level_images(stored.X[kept]), stored.y[kept]
    X, X_test, y, y_test = train_test_split(images, y, test_size=0.3, random_state=0, stratify=y)
    X, y = X[:rows], y[:rows]
    columns, columns_test = compute_responses(X, X_test)
    return columns, y, columns_test, y_test


def level_images(images: np.ndarray) -> np.ndarray:
    """Return images of mean zero and variance one, with bright characters."""
    images = np.asarray(images, dtype=np.float32)
    images = images - images.mean(axis=(1, 2), keepdims=True)
    images /= np.maximum(images.std(axis=(1, 2), keepdims=True), 1e-6)
    inside = slice(BORDER, -BORDER)
    border = np.ones(images.shape[1:], dtype=bool)
    border[inside, inside] = False
    dark = np.median(images[:, border], axis=1) > 0
    return np.where(dark[:, None, None], -images, images)


def compute_responses(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the responses of all patches, with templates learned from ``X``."""
    from mixnorm.pools import Patches

    X, X_test = (part.reshape(len(part), -1) for part in (X, X_test))
    pool = Patches(SIZE, TEMPLATES, MASKS).learn(X, random_state=0)
    learned = len(pool.template_sets()[0])
    atoms = [(template, mask) for template in range(learned) for mask in range(MASKS)]
    return pool.evaluate(X, atoms), pool.evaluate(X_test, atoms)
