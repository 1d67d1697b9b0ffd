"""The other methods of ``benchmarks.mnist``: trees, a Gaussian SVM and a small network.

All get the same images as rows of 784 pixels. Their settings are defaults, or values that are well
known for mnist; there is no search.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# For pixels between zero and one.
SVM_C, SVM_GAMMA = 5.0, 0.02
HIDDEN = (256, 128)


@dataclass(frozen=True)
class Peer:
    """A classifier of another library; ``scaled`` ones get pixels divided by 255."""

    needs: str
    make: Callable[[int], Any]
    scaled: bool = False

    def available(self) -> bool:
        """Return whether the library is installed."""
        return importlib.util.find_spec(self.needs) is not None

    def rows(self, images: np.ndarray) -> np.ndarray:
        """Return images as rows in the form that the classifier takes."""
        rows = images.reshape(len(images), -1)
        return rows.astype(np.float32) / np.float32(255) if self.scaled else rows


def make_lightgbm(threads: int) -> Any:
    """Return LightGBM with its defaults: 100 rounds, each with a tree for each class."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=threads, verbose=-1, random_state=0)


def make_xgboost(threads: int) -> Any:
    """Return XGBoost with its defaults: 100 rounds, each with a tree for each class."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=threads, random_state=0)


def make_svm(threads: int) -> Any:
    """Return a Gaussian SVM, which always has one thread."""
    from sklearn.svm import SVC

    return SVC(C=SVM_C, gamma=SVM_GAMMA, cache_size=1000)


def make_network(threads: int) -> Any:
    """Return a network of two layers, which stops early by a tenth of the training images."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(HIDDEN, early_stopping=True, random_state=0)


PEERS = {
    "lightgbm": Peer("lightgbm", make_lightgbm),
    "xgboost": Peer("xgboost", make_xgboost),
    "svm": Peer("sklearn", make_svm, scaled=True),
    "network": Peer("sklearn", make_network, scaled=True),
}
