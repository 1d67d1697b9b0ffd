"""Images for ``benchmarks.mnist``: parts, images held out, deformed copies, devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import _data

# One training image in six is held out, the last ones of a fixed permutation: 10,000 of 60,000.
HELD_OUT, SEED = 6, 7


@dataclass(frozen=True)
class Images:
    """Images to learn from and to be judged by, ``(n, height, width)``, with their labels."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def load(*, holdout: bool = False, rows: int | None = None) -> Images:
    """Return mnist's parts; ``holdout`` leaves the test part alone and judges by training images.

    ``rows`` keeps so many images to learn from.
    """
    X, y, X_test, y_test = _data.parts("mnist")
    if holdout:
        order = np.random.default_rng(SEED).permutation(len(X))
        count = len(X) - len(X) // HELD_OUT
        learned, held = order[:count], order[count:]
        X, y, X_test, y_test = X[learned], y[learned], X[held], y[held]
    return Images(X[:rows], y[:rows], X_test, y_test)


def on_device(images: Images, device: str) -> Images:
    """Return images and labels as tensors on a device of torch's; on the CPU, as they are."""
    if device == "cpu":
        return images
    import torch

    parts = (images.X, images.y, images.X_test, images.y_test)
    X, y, X_test, y_test = (torch.from_numpy(np.ascontiguousarray(p)).to(device) for p in parts)
    return Images(X, y.to(torch.int64), X_test, y_test.to(torch.int64))


def with_copies(images: Images, copies: int, deformations: Mapping[str, float]) -> Images:
    """Return the training images with deformed copies behind them."""
    if not copies:
        return images
    from mixnorm.datasets import deform_images

    made = deform_images(images.X, n_copies=copies, random_state=0, **deformations)
    X, y = _stacked([images.X, made]), _stacked([images.y] * (copies + 1))
    return Images(X, y, images.X_test, images.y_test)


def set_upright(images: Images) -> Images:
    """Return the images to learn from set upright; those to be judged by stay as they are."""
    from mixnorm.datasets import deslant_images

    return Images(deslant_images(images.X), images.y, images.X_test, images.y_test)


class Upright:
    """A model of upright images, for images as they come."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any) -> Any:
        """Set images upright, and predict."""
        from mixnorm.datasets import deslant_images

        return self.model.predict(deslant_images(X))


def _stacked(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch

    return torch.cat(parts)
