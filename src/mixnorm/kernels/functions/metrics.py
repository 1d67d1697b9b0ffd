"""Metrics of two rows that kernels are functions of: distances and inner products, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mixnorm._array import MatrixLike, is_sparse
from mixnorm._chunks import row_blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Rows that kernels compare: a dense table or a CSR matrix.
Rows: TypeAlias = "np.ndarray | csr_array"

# Entries of a block that are computed at a time; a few such blocks stay in the cache.
BLOCK = 2**18
# Magnitudes whose squares, summed over many columns, are still far from overflow.
# 1e280 for a square leaves room for sums over 1e28 columns.
_LARGEST_ENTRY = 1e140
# Rows are far from the origin if the squared length of their mean exceeds their variance so often.
# Differences of squares lose as many digits as the squared distance from the origin exceeds the
# variance; centring costs a copy of the rows.
_FAR_FROM_ORIGIN = 16.0
# Squared distances below this part of the squared lengths have lost too many digits. Where more
# than ``_MANY_NEAR_ROWS`` of all distances have, all are computed again.
_NEAR_ROWS, _MANY_NEAR_ROWS = 1e-3, 0.05


class Points:
    """Rows of some columns, with what metrics need of single rows.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_columns)
        Of float32 or float64.
    centre : array of shape (n_columns,), optional
        Subtracted from all rows before distances are computed. Distances do not depend on it, but
        their rounding does: far from the origin, differences of squares cancel. None for sparse
        rows.
    """

    def __init__(self, X: Rows, centre: np.ndarray | None = None) -> None:
        self.X = X
        self.centre = centre
        self._ready: dict[str, Any] = {}

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are a sparse matrix."""
        return not isinstance(self.X, np.ndarray)

    def prepare(self, metric: str | None) -> Points:
        """Compute what a metric needs of single rows, for all parts that are taken later."""
        if metric == "sqeuclidean":
            _ = self.squares  # and with them the centred rows
        elif metric is not None:
            _ = self.wide
        return self

    def part(self, index: slice | np.ndarray) -> Points:
        """Return some of the rows: views, for a slice of dense ones."""
        some = Points(self.X[index], self.centre)
        # What was computed for all rows is cut, not computed again.
        some._ready = {name: value[index] for name, value in self._ready.items()}
        return some

    @property
    def wide(self) -> Any:
        """The rows in float64."""
        return self._compute_once("wide", lambda: self.X.astype(np.float64, copy=False))

    @property
    def centred(self) -> Any:
        """The rows in float64, less the centre; sparse ones as they are."""
        centre = self.centre
        if centre is None:
            return self.wide
        return self._compute_once("centred", lambda: self.X - centre)

    @property
    def squares(self) -> np.ndarray:
        """The squared norms of the centred rows."""
        return np.asarray(self._compute_once("squares", lambda: squared_norms(self.centred)))

    def _compute_once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._ready:
            self._ready[name] = make()
        return self._ready[name]


def squared_norms(X: Rows) -> np.ndarray:
    """Return the squared norm of each row, summed in float64."""
    if not isinstance(X, np.ndarray):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).reshape(-1)
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def centre_of(X: Rows) -> np.ndarray | None:
    """Return the mean row if it is far from the origin, compared with the variance; else None.

    Sparse rows have no centre, since they must stay sparse.
    """
    if not isinstance(X, np.ndarray) or X.shape[0] == 0:
        return None
    mean = np.asarray(np.mean(X, axis=0, dtype=np.float64))
    distance, spread = float(mean @ mean), float(np.sum(np.var(X, axis=0, dtype=np.float64)))
    return mean if distance > _FAR_FROM_ORIGIN * spread else None


# --- the metrics, each of two sets of prepared rows


def _dot(P: Points, Q: Points) -> np.ndarray:
    product = P.wide @ Q.wide.T
    return np.asarray(product.toarray() if P.is_sparse else product)


def _sqeuclidean(P: Points, Q: Points) -> np.ndarray:
    if _is_column(P):
        # Of one column the squared difference itself is the quickest, and no digits cancel.
        found: np.ndarray = np.subtract(P.centred, Q.centred.T)
        found *= found
        return found
    found = _dot(P, Q) if P.is_sparse else P.centred @ Q.centred.T
    # |p|^2 + |q|^2 - 2 <p, q>: one matrix product instead of a pass over all columns for each pair.
    found *= -2.0
    found += P.squares[:, None]
    found += Q.squares
    _sharpen(found, P, Q)
    return found


def _sharpen(found: np.ndarray, P: Points, Q: Points) -> None:
    """Compute the distances of near rows again, from differences of their entries.

    Differences of squares lose digits there, all of them where rows are equal. What is left would
    depend on how many rows are compared at a time.
    """
    if found.size == 0:
        return
    # A cheap test with the largest square of all first; only the pairs that pass are looked at one
    # by one.
    far = _NEAR_ROWS * (P.squares + np.max(Q.squares))
    places = np.flatnonzero(found < far[:, None])
    left, right = np.divmod(places, found.shape[1])
    near = found.ravel()[places] < _NEAR_ROWS * (P.squares[left] + Q.squares[right])
    left, right = left[near], right[near]
    if len(left) > _MANY_NEAR_ROWS * found.size and not P.is_sparse:
        from scipy.spatial.distance import cdist

        found[...] = cdist(P.centred, Q.centred, "sqeuclidean")
        return
    for part in row_blocks(len(left), BLOCK, P.X.shape[1]):
        some, others = left[part], right[part]
        found[some, others] = squared_norms(P.centred[some] - Q.centred[others])


def _is_column(P: Points) -> bool:
    """Whether rows have one dense column: their distances are differences, exactly symmetric."""
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
    # The metric needs dense rows; only some of them are made dense at a time.
    found = np.empty((len(P), len(Q)))
    width = P.X.shape[1]
    for rows in row_blocks(len(P), BLOCK, width):
        left = P.wide[rows].toarray()
        for others in row_blocks(len(Q), BLOCK, width):
            found[rows, others] = -additive_chi2_kernel(left, Q.wide[others].toarray())
    return found


#: Metrics by name; kernels of one metric on the same columns share its values.
METRICS: dict[str, Callable[[Points, Points], np.ndarray]] = {
    "chi2": _chi2,
    "cityblock": _cityblock,
    "dot": _dot,
    "sqeuclidean": _sqeuclidean,
}


def compute_metric(metric: str, P: Points, Q: Points, diagonal: bool = False) -> np.ndarray:
    """Return the metric of all pairs of rows: ``(len(P), len(Q))``, in float64.

    Parameters
    ----------
    metric : {"chi2", "cityblock", "dot", "sqeuclidean"}
        The name of the metric.
    P, Q : Points
        Both dense or both sparse.
    diagonal : bool
        Whether the rows of ``P`` are the first rows of ``Q``. The block of these rows is then made
        symmetric, and distances of a row from itself are set to zero.
    """
    found = METRICS[metric](P, Q)
    if diagonal and not (_is_column(P) and metric in ("cityblock", "sqeuclidean")):
        square = found[:, : len(P)]
        # Blocks of different shapes round differently: the upper half is mirrored, so that the
        # matrix is the same whatever the size of the blocks.
        square[...] = np.triu(square) + np.triu(square, 1).T
        if metric != "dot":
            np.fill_diagonal(square, 0.0)
    return found


def pairwise(metric: str, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
    """Return the metric of all rows of ``X`` and ``Y``, or of ``X`` and itself.

    Examples
    --------
    >>> import numpy as np
    >>> pairwise("sqeuclidean", np.array([[1e8], [1e8 + 1.0]]))
    array([[0., 1.],
           [1., 0.]])
    """
    left, right = _as_alike_rows(X, Y)
    itself = right is left
    centre = centre_of(right)
    Q = Points(right, centre).prepare(metric)
    P = Q if itself else Points(left, centre).prepare(metric)
    found = np.empty((len(P), len(Q)))
    for some in row_blocks(len(P), BLOCK, len(Q)):
        if not itself:
            found[some] = compute_metric(metric, P.part(some), Q)
            continue
        # Each pair of rows is computed once, and written on both sides of the diagonal.
        rest = slice(some.stop, len(P))
        right_part = Q.part(slice(some.start, None))
        found[some, some.start :] = compute_metric(metric, P.part(some), right_part, True)
        found[rest, some] = found[some, rest].T
    return found


def compute_diagonal(metric: str, X: MatrixLike) -> np.ndarray:
    """Return the metric of each row with itself."""
    rows = as_rows(X)
    return squared_norms(rows) if metric == "dot" else np.zeros(rows.shape[0])


def _as_alike_rows(X: MatrixLike, Y: MatrixLike | None) -> tuple[Rows, Rows]:
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


def as_rows(X: Any, what: str = "X") -> Rows:
    """Return a table as a dense array or CSR matrix of float32 or float64, checked."""
    rows: Any = X.tocsr() if is_sparse(X) else np.asarray(X)
    # Twice the same column would be counted as two entries; the user's matrix is not changed.
    if is_sparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.ndim != 2:
        raise ValueError(
            f"{what} has {rows.ndim} axes; give a table of shape (n_rows, n_columns), "
            "reshape(-1, 1) for one column."
        )
    if rows.dtype not in (np.float32, np.float64):
        rows = _as_floats(rows, what)
    values = rows.data if is_sparse(rows) else rows
    # NaN makes the comparison false, too.
    # Two passes without a temporary array, where ``isfinite`` would make one of the size of the
    # data.
    least, most = float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0))
    if not -_LARGEST_ENTRY <= least <= most <= _LARGEST_ENTRY:
        if np.all(np.isfinite(values)):
            raise ValueError(
                f"{what} has values beyond {_LARGEST_ENTRY:g}, whose squares cannot be summed. "
                "Scale its columns, for example with sklearn.preprocessing.StandardScaler."
            )
        raise ValueError(
            f"{what} has missing or infinite values; kernels need numbers. Fill them in first, "
            "for example with sklearn.impute.SimpleImputer."
        )
    checked: Rows = rows
    return checked


def _as_floats(rows: Any, what: str) -> Any:
    """Return rows in float64; raise for texts, dates and complex numbers."""
    try:
        if rows.dtype.kind not in "cSUVmM":
            return rows.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"{what} has values that are not real numbers (dtype {rows.dtype}); kernels need numbers. "
        "Choose columns of numbers, or encode the others with a preprocess transformer."
    )
