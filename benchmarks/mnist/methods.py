"""The methods of ``benchmarks.mnist`` besides ShareBoost: trees, a Gaussian SVM, a small network.

All of them get the same images as rows of 784 pixels. Their settings are defaults or values that
are well known for mnist; nothing is searched for.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Pixels between zero and one.
SVM_C, SVM_GAMMA = 5.0, 0.02
HIDDEN = (256, 128)


@dataclass(frozen=True)
class Peer:
    """A classifier of another library; ``scaled`` ones get pixels divided by 255."""

    needs: str
    make: Callable[[int], Any]
    scaled: bool = False

    def available(self) -> bool:
        """Tell whether the library is installed."""
        return importlib.util.find_spec(self.needs) is not None

    def rows(self, images: np.ndarray) -> np.ndarray:
        """Return images as rows in the form that the classifier takes."""
        rows = images.reshape(len(images), -1)
        return rows.astype(np.float32) / np.float32(255) if self.scaled else rows


def lightgbm(threads: int) -> Any:
    """Return LightGBM with its defaults: 100 rounds, a tree for each class in each."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=threads, verbose=-1, random_state=0)


def xgboost(threads: int) -> Any:
    """Return XGBoost with its defaults: 100 rounds, a tree for each class in each."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=threads, random_state=0)


def svm(threads: int) -> Any:
    """Return a Gaussian SVM, which has one thread whatever is given."""
    from sklearn.svm import SVC

    return SVC(C=SVM_C, gamma=SVM_GAMMA, cache_size=1000)


def network(threads: int) -> Any:
    """Return a network of two layers that stops by a tenth of the training images."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(HIDDEN, early_stopping=True, random_state=0)


PEERS = {
    "lightgbm": Peer("lightgbm", lightgbm),
    "xgboost": Peer("xgboost", xgboost),
    "svm": Peer("sklearn", svm, scaled=True),
    "network": Peer("sklearn", network, scaled=True),
}
