"""What kernels are functions of: distances and inner products of rows, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mixnorm._array import is_sparse

# Entries of a block that are worked on at a time; a few such blocks stay in the cache.
BLOCK = 2**18
# Magnitudes whose squares, summed over many columns, are still far from overflow.
_LARGEST = 1e140
# Rows whose mean has so many times the squared length of their spread are far from the origin.
_FAR = 16.0
# Squared distances below this part of the squared lengths have lost too many digits; where so large
# a part of them has, all are computed anew.
_NEAR, _MANY_NEAR = 1e-3, 0.05


class Points:
    """Rows of some columns, made ready for metrics.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_columns)
        Of float32 or float64.
    centre : array of shape (n_columns,), optional
        What distances are measured from. They do not depend on it, but rounding does: far from the
        origin, differences of squares would lose what matters. Sparse rows have none.
    """

    def __init__(self, X: Any, centre: np.ndarray | None = None) -> None:
        self.X = X
        self.centre = centre
        self._ready: dict[str, Any] = {}

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are a sparse matrix."""
        return is_sparse(self.X)

    def prepared(self, metric: str | None) -> Points:
        """Compute what a metric needs of single rows; parts made later share it."""
        if metric in _NEEDS:
            for name in _NEEDS[metric]:
                getattr(self, name)
        return self

    def part(self, index: slice | np.ndarray) -> Points:
        """Return some of the rows: views, for a slice of dense ones."""
        some = Points(self.X[index], self.centre)
        some._ready = {name: value[index] for name, value in self._ready.items()}
        return some

    @property
    def wide(self) -> Any:
        """The rows in float64."""
        return self._kept("wide", lambda: self.X.astype(np.float64, copy=False))

    @property
    def centred(self) -> Any:
        """The rows in float64, less the centre; sparse ones as they are."""
        if self.centre is None:
            return self.wide
        return self._kept("centred", lambda: self.X - self.centre)

    @property
    def squares(self) -> np.ndarray:
        """The squared norms of the centred rows."""
        found: np.ndarray = self._kept("squares", lambda: squared_norms(self.centred))
        return found

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._ready:
            self._ready[name] = make()
        return self._ready[name]


def squared_norms(X: Any) -> np.ndarray:
    """Return the squared norm of each row, summed in float64."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).reshape(-1)
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def centre_of(X: Any) -> np.ndarray | None:
    """Return the mean row, where rows lie far from the origin beside their spread; else None.

    Sparse rows have none, since they must stay sparse.
    """
    if is_sparse(X) or X.shape[0] == 0:
        return None
    mean = np.asarray(np.mean(X, axis=0, dtype=np.float64))
    distance, spread = float(mean @ mean), float(np.sum(np.var(X, axis=0, dtype=np.float64)))
    return mean if distance > _FAR * spread else None


# --- the metrics, each of two sets of prepared rows


def _dot(P: Points, Q: Points) -> np.ndarray:
    product = P.wide @ Q.wide.T
    return np.asarray(product.toarray() if P.is_sparse else product)


def _sqeuclidean(P: Points, Q: Points) -> np.ndarray:
    if _is_column(P):
        found: np.ndarray = np.subtract(P.centred, Q.centred.T)
        found *= found
        return found
    found = _dot(P, Q) if P.is_sparse else P.centred @ Q.centred.T
    found *= -2.0
    found += P.squares[:, None]
    found += Q.squares
    _sharpen(found, P, Q)
    return found


def _sharpen(found: np.ndarray, P: Points, Q: Points) -> None:
    """Compute the distances of near rows anew, by differences.

    As differences of squares they have lost digits, all of them where rows are equal. What is left
    then depends on how many rows are compared at a time.
    """
    if found.size == 0:
        return
    far = _NEAR * (P.squares + np.max(Q.squares))
    places = np.flatnonzero(found < far[:, None])
    left, right = np.divmod(places, found.shape[1])
    near = found.ravel()[places] < _NEAR * (P.squares[left] + Q.squares[right])
    left, right = left[near], right[near]
    if len(left) > _MANY_NEAR * found.size and not P.is_sparse:
        from scipy.spatial.distance import cdist

        found[...] = cdist(P.centred, Q.centred, "sqeuclidean")
        return
    step = max(1, BLOCK // max(1, P.X.shape[1]))
    for start in range(0, len(left), step):
        some, others = left[start : start + step], right[start : start + step]
        found[some, others] = squared_norms(P.centred[some] - Q.centred[others])


def _is_column(P: Points) -> bool:
    """Whether rows are one dense column, whose distances are differences, and so symmetric."""
    return not P.is_sparse and P.X.shape[1] == 1


def _cityblock(P: Points, Q: Points) -> np.ndarray:
    if P.is_sparse:
        from sklearn.metrics.pairwise import manhattan_distances

        return np.asarray(manhattan_distances(P.wide, Q.wide))
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(P.wide, Q.wide, "cityblock"))


def _chi2(P: Points, Q: Points) -> np.ndarray:
    from sklearn.metrics.pairwise import additive_chi2_kernel

    if not P.is_sparse:
        return np.asarray(-additive_chi2_kernel(P.wide, Q.wide))
    # As dense as the metric needs them, but only so many rows at a time.
    found = np.empty((len(P), len(Q)))
    step = max(1, BLOCK // max(1, P.X.shape[1]))
    for top in range(0, len(P), step):
        left = P.wide[top : top + step].toarray()
        for start in range(0, len(Q), step):
            right = Q.wide[start : start + step].toarray()
            found[top : top + step, start : start + step] = -additive_chi2_kernel(left, right)
    return found


#: Metrics by name: what kernels on the same columns can share.
METRICS: dict[str, Callable[[Points, Points], np.ndarray]] = {
    "chi2": _chi2,
    "cityblock": _cityblock,
    "dot": _dot,
    "sqeuclidean": _sqeuclidean,
}
_NEEDS = {
    "chi2": ("wide",),
    "cityblock": ("wide",),
    "dot": ("wide",),
    "sqeuclidean": ("centred", "squares"),
}


def between(metric: str, P: Points, Q: Points, diagonal: bool = False) -> np.ndarray:
    """Return the metric of all pairs of rows: ``(len(P), len(Q))``, in float64.

    Parameters
    ----------
    metric : {"chi2", "cityblock", "dot", "sqeuclidean"}
        The name of the metric.
    P, Q : Points
        Both dense or both sparse.
    diagonal : bool
        The rows of ``P`` are the first of ``Q``. The block that they span is made symmetric, and
        what rounding left of distances from themselves is removed.
    """
    found = METRICS[metric](P, Q)
    if diagonal and not (_is_column(P) and metric in ("cityblock", "sqeuclidean")):
        square = found[:, : len(P)]
        square[...] = np.triu(square) + np.triu(square, 1).T
        if metric != "dot":
            np.fill_diagonal(square, 0.0)
    return found


def pairwise(metric: str, X: Any, Y: Any = None) -> np.ndarray:
    """Return the metric of all rows of ``X`` and ``Y``, or of ``X`` and itself.

    Examples
    --------
    >>> import numpy as np
    >>> pairwise("sqeuclidean", np.array([[1e8], [1e8 + 1.0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    left, right = alike(X, Y)
    itself = right is left
    centre = centre_of(right)
    Q = Points(right, centre).prepared(metric)
    P = Q if itself else Points(left, centre).prepared(metric)
    found = np.empty((len(P), len(Q)))
    step = max(1, BLOCK // max(1, len(Q)))
    for start in range(0, len(P), step):
        some = slice(start, min(start + step, len(P)))
        if not itself:
            found[some] = between(metric, P.part(some), Q)
            continue
        rest = slice(some.stop, len(P))
        found[some, start:] = between(metric, P.part(some), Q.part(slice(start, None)), True)
        found[rest, some] = found[some, rest].T
    return found


def own(metric: str, X: Any) -> np.ndarray:
    """Return the metric of each row and itself."""
    rows = as_rows(X)
    return squared_norms(rows) if metric == "dot" else np.zeros(rows.shape[0])


def alike(X: Any, Y: Any) -> tuple[Any, Any]:
    """Return two tables as rows, both dense or both sparse; the same object where they are one."""
    left = as_rows(X)
    if Y is None or Y is X:
        return left, left
    right = as_rows(Y)
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"X has {left.shape[1]} columns, but Y has {right.shape[1]}; a kernel compares rows of "
            "the same columns."
        )
    if is_sparse(left) != is_sparse(right):
        from scipy.sparse import csr_array

        return csr_array(left), csr_array(right)
    return left, right


def as_rows(X: Any, what: str = "X") -> Any:
    """Return a table as a dense array or CSR matrix of float32 or float64, checked."""
    if is_sparse(X):
        rows = X.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        values = rows.data
    else:
        rows = values = _dense(X, what)
    if rows.ndim != 2:
        raise ValueError(
            f"{what} has {rows.ndim} axes; give a table of shape (n_rows, n_columns), "
            "reshape(-1, 1) for one column."
        )
    if values.dtype not in (np.float32, np.float64):
        rows = _numbers(rows, what)
        values = rows.data if is_sparse(rows) else rows
    # NaN makes the comparison false, too.
    if values.size and not -_LARGEST <= float(np.min(values)) <= float(np.max(values)) <= _LARGEST:
        if np.all(np.isfinite(values)):
            raise ValueError(
                f"{what} has values beyond {_LARGEST:g}, whose squares cannot be summed. Scale its "
                "columns, with sklearn.preprocessing.StandardScaler say."
            )
        raise ValueError(
            f"{what} has missing or infinite values; kernels need numbers. Fill them in first, "
            "with sklearn.impute.SimpleImputer say."
        )
    return rows


def _dense(X: Any, what: str) -> np.ndarray:
    rows = np.asarray(X)
    if rows.dtype.kind in "cSUVmM":
        raise ValueError(_not_numbers(what, rows.dtype))
    return rows


def _numbers(rows: Any, what: str) -> Any:
    try:
        return rows.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(_not_numbers(what, rows.dtype)) from None


def _not_numbers(what: str, dtype: Any) -> str:
    return (
        f"{what} has values that are no real numbers (dtype {dtype}); kernels need numbers. Choose "
        "columns of numbers, or encode the others with a preprocess transformer."
    )
