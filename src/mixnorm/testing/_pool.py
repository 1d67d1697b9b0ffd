"""The contract of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm._array import device_of, namespace, to_numpy
from mixnorm.pools import working_dtype
from mixnorm.testing._contract import require, require_close, require_parameters

_RULES = ("l1", "l2")


@dataclass(frozen=True)
class _Case:
    """A pool bound to its data, with a residual to score its atoms for."""

    pool: Any
    X: Any
    weight: Any
    residual: Any
    options: dict[str, bool]
    max_atoms: int

    def prepared(self, pool: Any | None = None) -> Any:
        pool = self.pool if pool is None else pool
        return pool.prepare(self.X, weight=self.weight, **self.options)

    def eps(self) -> float:
        return float(np.finfo(to_numpy(self.weight).dtype).eps)


def check_pool(
    pool: Any, X: Any, *, n_outputs: int = 3, max_atoms: int = 50, random_state: int = 0
) -> None:
    """Check that a pool keeps the promises the greedy engine and prediction rely on.

    Scores are compared with the gradients of the columns that the pool hands out, these with what
    ``evaluate`` returns on the same data, and copies of the pool with the pool itself.

    Parameters
    ----------
    pool : pool
        The pool to check, not yet bound to data.
    X : array or sparse matrix of shape (n_samples, n_features)
        Data to bind it to; some tens of rows are enough.
    n_outputs : int, default=3
        Number of outputs of the random residual.
    max_atoms : int, default=50
        Most atoms to look at, best first.
    random_state : int, default=0
        Seed of the residual and the weights.

    Raises
    ------
    mixnorm.exceptions.ContractError
        At the first promise that is broken.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.pools import Columns
    >>> check_pool(Columns(groups=["a", "a", "b"]), np.arange(12.0).reshape(4, 3) % 5)
    """
    rng = np.random.default_rng(random_state)
    weight = rng.uniform(0.5, 2.0, size=X.shape[0])
    weight /= weight.sum()
    # As at the optimum over the intercept: constant columns then have no gradient.
    residual = rng.standard_normal((X.shape[0], n_outputs)) * weight[:, None]
    residual -= residual.mean(axis=0)
    arrays = _follow(X, weight), _follow(X, residual)
    before = _snapshot(X)
    for scale in (True, False):
        for fit_intercept in (True, False):
            options = {"scale": scale, "fit_intercept": fit_intercept}
            case = _Case(pool, X, *arrays, options, max_atoms)
            prepared = case.prepared()
            _check_columns(case, prepared)
            for rule in _RULES:
                _check_scores(case, prepared, rule)
                _check_exclusion(case, prepared, rule)
            _check_copies(case, prepared)
    require(np.array_equal(before, _snapshot(X)), pool, "the data are left as they were")


def _follow(X: Any, array: np.ndarray) -> Any:
    """Return ``array`` in the namespace, working dtype and device of ``X``."""
    dtype = working_dtype(X)
    if hasattr(X, "toarray") or isinstance(X, np.ndarray):
        return array.astype(dtype)
    return namespace(X).asarray(array, dtype=dtype, device=device_of(X))


def _dense(X: Any) -> np.ndarray:
    return to_numpy(X.toarray() if hasattr(X, "toarray") else X)


def _snapshot(X: Any) -> np.ndarray:
    return np.array(_dense(X))


def _check_scores(case: _Case, prepared: Any, rule: str) -> None:
    ranked = prepared.top(case.residual, rule, case.max_atoms, frozenset())
    scores = np.asarray([score for _, score in ranked])
    require(len(ranked) <= case.max_atoms, case.pool, "top returns at most m atoms")
    require(len({atom for atom, _ in ranked}) == len(ranked), case.pool, "atoms differ, and hash")
    require(np.all(scores > 0.0), case.pool, "scores of offered atoms are positive")
    require(np.all(np.diff(scores) <= 0.0), case.pool, "top returns the best atom first")
    residual = to_numpy(case.residual).astype(np.float64)
    for atom, score in ranked:
        rows = to_numpy(prepared.columns(atom)).astype(np.float64)
        gradient = rows @ residual
        wanted = np.abs(gradient).sum() if rule == "l1" else np.sqrt((gradient**2).sum())
        # Rounding of a sum of n products, and of the scaled columns themselves.
        size = float((np.abs(rows) @ np.abs(residual)).sum())
        atol = 4.0 * case.eps() * np.sqrt(rows.shape[1]) * size
        promise = f"the {rule} score of atom {atom!r} is the norm of its columns' gradient"
        require_close(score, wanted, case.pool, promise, atol=atol)


def _check_exclusion(case: _Case, prepared: Any, rule: str) -> None:
    ranked = prepared.top(case.residual, rule, case.max_atoms, frozenset())
    if len(ranked) < 2:
        return
    promise = "top(m=1) is the first of top(m)"
    best = prepared.top(case.residual, rule, 1, frozenset())
    require(best == ranked[:1], case.pool, promise, f"got {best}, not {ranked[:1]}")
    excluded = frozenset(atom for atom, _ in ranked[::2])
    left = prepared.top(case.residual, rule, case.max_atoms, excluded)
    offered = [atom for atom, _ in left]
    require(not excluded & set(offered), case.pool, "excluded atoms are not offered")
    wanted = [atom for atom, _ in ranked[1::2]]
    promise = "excluding atoms leaves the order of the others"
    require(offered[: len(wanted)] == wanted, case.pool, promise, f"got {offered}, not {wanted}")


def _check_columns(case: _Case, prepared: Any) -> None:
    ranked = prepared.top(case.residual, "l1", case.max_atoms, frozenset())
    atoms = [atom for atom, _ in ranked]
    blocks = [prepared.columns(atom) for atom in atoms]
    n_samples = case.X.shape[0]
    for atom, block in zip(atoms, blocks, strict=True):
        require(
            len(block.shape) == 2 and block.shape[0] >= 1 and block.shape[1] == n_samples,
            case.pool,
            f"columns({atom!r}) has shape (width, {n_samples})",
            f"got {tuple(block.shape)}",
        )
        promise = "columns have the dtype of the weights"
        require(block.dtype == case.weight.dtype, case.pool, promise, f"got {block.dtype}")
        scale = to_numpy(prepared.scale(atom))
        require(scale.shape == (block.shape[0],), case.pool, "scale has one entry per column")
        require(np.all(np.isfinite(scale) & (scale > 0.0)), case.pool, "scales are positive")
        values = _dense(case.pool.evaluate(case.X, [atom])) / scale[None, :]
        promise = f"evaluate on the training data, divided by scale, equals columns({atom!r})"
        rtol = 8.0 * case.eps()
        require_close(to_numpy(block).T, values, case.pool, promise, rtol=rtol, atol=1e-300)
    if not atoms:
        return
    together = _dense(case.pool.evaluate(case.X, atoms))
    apart = np.concatenate([_dense(case.pool.evaluate(case.X, [atom])) for atom in atoms], axis=1)
    promise = "evaluate puts the columns of several atoms side by side"
    require_close(together, apart, case.pool, promise)
    labels = case.pool.labels(atoms)
    require(len(labels) == len(atoms), case.pool, "labels names every atom", f"got {labels}")


def _check_copies(case: _Case, prepared: Any) -> None:
    wanted = prepared.top(case.residual, "l1", case.max_atoms, frozenset())
    again = prepared.top(case.residual, "l1", case.max_atoms, frozenset())
    require(again == wanted, case.pool, "top gives the same again when called again")
    for pool in (case.pool, *require_parameters(case.pool)):
        found = case.prepared(pool).top(case.residual, "l1", case.max_atoms, frozenset())
        require(found == wanted, case.pool, "preparing it again, or a copy, gives the same atoms")
