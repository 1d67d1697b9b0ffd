"""The columns that go into a model, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True, eq=False)
class Inputs:
    """The columns of the data that a model was fitted on.

    Parameters
    ----------
    n_features : int
        Number of columns.
    names : tuple of str, optional
        Their names, where all columns had one.
    """

    n_features: int
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Inputs:
        """Return the columns that scikit-learn's validation has noted on an estimator."""
        names = getattr(estimator, "feature_names_in_", None)
        return cls(int(estimator.n_features_in_), None if names is None else tuple(names))

    @property
    def name_array(self) -> np.ndarray | None:
        """The names as an array, which is how scikit-learn keeps them."""
        return None if self.names is None else np.asarray(self.names, dtype=object)

    def check(self, n_outputs: int, max_bytes: int) -> None:
        """Raise unless the columns are possible and weights for all of them fit in memory."""
        if type(self.n_features) is not int or self.n_features < 1:
            raise ValueError("n_features_in_ must be a whole number from 1 up")
        # A file of a few bytes may name a billion columns; ``coef_`` would then take the memory of
        # the machine.
        size = 8 * self.n_features * n_outputs
        if size > max_bytes:
            raise MemoryError(
                f"coef_ of {n_outputs} outputs and {self.n_features} columns takes {size} bytes, "
                f"and max_bytes allows {max_bytes}. If you trust the file, load it with a larger "
                "max_bytes"
            )
        if self.names is not None and len(self.names) != self.n_features:
            raise ValueError(f"feature_names_in_ must be an array of {self.n_features} names")
