"""Images for ``benchmarks.mnist``: parts, images held out, deformed copies, devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.harness import splits

# One training image in six is held out, the last ones of the file: 10,000 of 60,000. Images of one
# writer are near each other there, so that, as in the test part, the writers are others. A random
# share would have the same, and models would seem better than they are.
HELD_OUT = 6


@dataclass(frozen=True)
class Images:
    """Images to learn from and to be judged by, ``(n, height, width)``, with their labels.

    Where ``weight`` is given, the images to learn from have weights.
    """

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    weight: Any = None


def load(*, holdout: bool = False, rows: int | None = None) -> Images:
    """Return mnist's parts; ``holdout`` leaves the test part alone and judges by training images.

    ``rows`` keeps so many images to learn from.
    """
    X, y, X_test, y_test = splits.parts("mnist")
    if holdout:
        count = len(X) - len(X) // HELD_OUT
        X, y, X_test, y_test = X[:count], y[:count], X[count:], y[count:]
    return Images(X[:rows], y[:rows], X_test, y_test)


def on_device(images: Images, device: str) -> Images:
    """Return images and labels as tensors on a device of torch's; on the CPU, as they are."""
    if device == "cpu":
        return images
    import torch

    parts = (images.X, images.y, images.X_test, images.y_test)
    X, y, X_test, y_test = (_tensor(np.ascontiguousarray(part), device) for part in parts)
    return Images(X, y.to(torch.int64), X_test, y_test.to(torch.int64))


def with_copies(
    images: Images, copies: int, deformations: Mapping[str, float], weight: float = 1.0
) -> Images:
    """Return the training images with deformed copies behind them.

    ``weight`` is that of an image itself, where a copy has one.
    """
    if not copies:
        return images
    from mixnorm.datasets import deform_images

    made = deform_images(images.X, n_copies=copies, random_state=0, **deformations)
    X, y = _stack([images.X, made]), _stack([images.y] * (copies + 1))
    weights = None
    if weight != 1.0:
        weights = np.where(np.arange(len(X)) < len(images.X), np.float32(weight), np.float32(1.0))
        weights = weights if isinstance(X, np.ndarray) else _tensor(weights, X.device)
    return replace(images, X=X, y=y, weight=weights)


def set_upright(images: Images) -> Images:
    """Return the images to learn from set upright; those to be judged by stay as they are."""
    from mixnorm.datasets import deslant_images

    return replace(images, X=deslant_images(images.X))


class Upright:
    """A model of upright images, for images as they come."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any) -> Any:
        """Set images upright, and predict."""
        from mixnorm.datasets import deslant_images

        return self.model.predict(deslant_images(X))


def _tensor(array: np.ndarray, device: Any) -> Any:
    import torch

    return torch.from_numpy(array).to(device)


def _stack(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch

    return torch.cat(parts)
