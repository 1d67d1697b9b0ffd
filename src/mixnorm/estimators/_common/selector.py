"""Estimators that select features: those that the model reads."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mixnorm._array import (
    Array,
    ArrayLike,
    MatrixLike,
    device_of,
    follow,
    is_foreign,
    namespace,
    to_dense,
    to_numpy,
)
from mixnorm.estimators._common.arrays import dispatches
from mixnorm.estimators._common.blocks.parts import map_parts
from mixnorm.estimators._common.fitted import FittedMixin
from mixnorm.estimators._common.validation import validate_data


class ColumnSelectorMixin(FittedMixin, OneToOneFeatureMixin, TransformerMixin):
    """``transform`` keeps the chosen columns, in their order in the table.

    The model has ``selected``, the chosen column numbers.
    """

    n_features_in_: int
    # What set_output has set.
    _sklearn_output_config: dict[Literal["transform"], Literal["default", "pandas", "polars"]]

    @property
    def selected_(self) -> Any:
        """The chosen columns, in the order in which they were chosen."""
        return self._follow_fit(self._get_model().selected)

    @property
    def support_(self) -> Any:
        """The chosen columns, in their order in the table."""
        return self._follow_fit(self.get_support(indices=True))

    @property
    def selected_names_(self) -> list[str]:
        """Names of the chosen columns, as in ``selected_``; ``x0, x1, ...`` if ``X`` has none."""
        # scikit-learn's names of all columns, of which the model has some.
        names = super().get_feature_names_out()
        return [str(names[column]) for column in to_numpy(self.selected_)]

    @property
    def feature_importances_(self) -> Any:
        """Importance of every column, which sums to one; zero for columns that are not chosen.

        It is the Euclidean norm of the column's weights in ``coef_``, over all outputs, and so
        depends on the unit of the column. Where atoms of a pool are not columns, each atom shares
        the norm of its weights equally among the columns that it reads; of models for each class,
        the norm over classes is taken. In joint boosting it is the sum of the drops of the training
        loss in the rounds that use the column.
        """
        found = self._importances()
        # Divided twice: by the largest, and then by the sum.
        found = found / (np.max(found, initial=0.0) or 1.0)  # so that no sum overflows
        return self._follow_fit(found / (np.sum(found) or 1.0))

    def _importances(self) -> np.ndarray:
        """Return the importance of every column, in any unit."""
        weights = np.atleast_2d(to_numpy(self.coef_))
        # Unlike sums of squares, these do not overflow.
        return np.asarray(np.hypot.reduce(weights, axis=0, initial=0.0))

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Return a mask of the chosen columns, or their sorted numbers.

        Parameters
        ----------
        indices : bool, default=False
            Return column numbers instead of a mask.

        Returns
        -------
        ndarray
            Boolean of shape (n_features,), or integer of shape (n_selected,).
        """
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[to_numpy(self.selected_)] = True
        return np.flatnonzero(mask) if indices else mask

    @map_parts
    def transform(self, X: MatrixLike) -> Any:
        """Return the chosen columns of ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        {ndarray, sparse matrix} of shape (n_samples, n_selected)
            A DataFrame if ``set_output`` asks for one.
        """
        check_is_fitted(self)
        X, support = self._new_table(X), self.get_support(indices=True)
        if is_foreign(X):
            return namespace(X).take(X, follow(support, X), axis=1)
        return X[:, support]

    def _new_table(self, X: MatrixLike) -> Any:
        """Return new data, checked."""
        return validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), dtype="numeric")

    def inverse_transform(self, X: Array) -> Any:
        """Put chosen columns back in their places, with zeros elsewhere.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_selected)
            What ``transform`` returned.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        support = self.get_support(indices=True)
        X = X if is_foreign(X) and dispatches() else np.asarray(to_dense(X))
        if X.ndim != 2 or X.shape[1] != len(support):
            raise ValueError(
                f"X has shape {X.shape}; inverse_transform takes the {len(support)} columns that "
                "transform returns."
            )
        xp, places = namespace(X), np.full(self.n_features_in_, len(support))
        # Columns that were not chosen take the last one, which is zero.
        places[support] = np.arange(len(support))
        nothing = xp.zeros((X.shape[0], 1), dtype=X.dtype, device=device_of(X))
        return xp.take(xp.concat([X, nothing], axis=1), follow(places, X), axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the chosen columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of ``X``; those seen in ``fit`` if there were any, else
            ``x0, x1, ...``.

        Returns
        -------
        ndarray of str
        """
        return super().get_feature_names_out(input_features)[self.get_support()]
