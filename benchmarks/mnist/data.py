"""Images for ``benchmarks.mnist``: parts, held-out images, deformed copies, devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.harness import splits

# The last 10,000 of 60,000 training images are held out. Images of one writer are near each other
# in the file, so the writers of held-out images are new, as in the test part. A random sample would
# have the same writers as the training images, and its errors would be too small.
HELD_OUT = 6


@dataclass(frozen=True)
class Images:
    """Training and evaluation images, ``(n, height, width)``, with their labels.

    ``weight`` has the weights of the training images, if they have any.
    """

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    weight: Any = None


def load(*, holdout: bool = False, rows: int | None = None) -> Images:
    """Return mnist's parts; with ``holdout``, held-out training images replace the test part.

    ``rows`` limits the number of training images.
    """
    X, y, X_test, y_test = splits.load_parts("mnist")
    if holdout:
        count = len(X) - len(X) // HELD_OUT
        X, y, X_test, y_test = X[:count], y[:count], X[count:], y[count:]
    return Images(X[:rows], y[:rows], X_test, y_test)


def move_to_device(images: Images, device: str) -> Images:
    """Return images and labels as torch tensors on a device, or unchanged for the CPU."""
    if device == "cpu":
        return images
    import torch

    parts = (images.X, images.y, images.X_test, images.y_test)
    X, y, X_test, y_test = (_as_tensor(np.ascontiguousarray(part), device) for part in parts)
    return Images(X, y.to(torch.int64), X_test, y_test.to(torch.int64))


def add_copies(
    images: Images, copies: int, deformations: Mapping[str, float], weight: float = 1.0
) -> Images:
    """Return the training images followed by deformed copies.

    ``weight`` is the weight of an original image; a copy has weight one.
    """
    if not copies:
        return images
    from mixnorm.datasets import deform_images

    made = deform_images(images.X, n_copies=copies, random_state=0, **deformations)
    X, y = _stack([images.X, made]), _stack([images.y] * (copies + 1))
    weights = None
    if weight != 1.0:
        weights = np.where(np.arange(len(X)) < len(images.X), np.float32(weight), np.float32(1.0))
        weights = weights if isinstance(X, np.ndarray) else _as_tensor(weights, X.device)
    return replace(images, X=X, y=y, weight=weights)


def set_upright(images: Images) -> Images:
    """Return images with the training images set upright, and the others unchanged."""
    from mixnorm.datasets import deslant_images

    return replace(images, X=deslant_images(images.X))


class Upright:
    """A model of upright images that sets its input images upright first."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any) -> Any:
        """Set images upright, and predict."""
        from mixnorm.datasets import deslant_images

        return self.model.predict(deslant_images(X))


def _as_tensor(array: np.ndarray, device: Any) -> Any:
    import torch

    return torch.from_numpy(array).to(device)


def _stack(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch

    return torch.cat(parts)
