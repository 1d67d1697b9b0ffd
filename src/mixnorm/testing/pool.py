"""The contract of a pool."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm._array import device_of, follow, is_sparse, namespace, to_dense, to_numpy
from mixnorm.pools import Pool, PreparedPool, as_pool, bind, working_dtype
from mixnorm.testing.contract import Contract

_RULES = ("l1", "l2")
# Values that are atoms of no pool, but that a damaged model file may contain.
_NO_ATOMS = (None, True, -1, 1.5, math.nan, "0", b"0", (), (None,), (-1,), (-1, 0), ((), ()))
# Atoms for checks that evaluate each of them several times.
_ATOMS_EVALUATED = 5


@dataclass(frozen=True)
class _PoolCase(Contract):
    """A pool bound to its data, with a residual to score its atoms for."""

    X: Any
    weight: Any
    residual: Any
    options: dict[str, Any]
    max_atoms: int

    @property
    def pool(self) -> Pool:
        return self.subject

    def prepare(self, pool: Any | None = None) -> PreparedPool:
        pool = self.pool if pool is None else pool
        return bind(pool, self.X, weight=self.weight, **self.options)

    def eps(self) -> float:
        return float(np.finfo(to_numpy(self.weight).dtype).eps)

    def top(
        self, prepared: PreparedPool, rule: str = "l1", **limits: Any
    ) -> list[tuple[Any, float]]:
        return prepared.top(self.residual, rule, self.max_atoms, frozenset(), **limits)

    def read(self, atom: Any) -> set[int]:
        return set(to_numpy(self.pool.feature_indices([atom], self.X.shape[1])).tolist())


def check_pool(
    pool: Any, X: Any, *, n_outputs: int = 3, max_atoms: int = 50, random_state: int = 0
) -> None:
    """Check that a pool keeps the promises that the greedy engine and predictions rely on.

    The check compares scores with the gradients of the pool's columns, columns with the result of
    ``evaluate`` on the same data, and copies of the pool with the pool itself. Optional methods are
    checked too, or the defaults in their place: ``cost`` and ``describe`` of the pool, and
    ``inputs``, ``price`` and ``shortlist`` of the prepared pool. If a prepared pool has an
    attribute ``pool``, with what was learned from the data, this pool evaluates the atoms. If
    ``grows`` is true, the pool may offer other atoms when some are excluded or inputs are limited.

    Parameters
    ----------
    pool : pool
        The pool to check, not yet bound to data.
    X : array or sparse matrix of shape (n_samples, n_features)
        Data to bind it to; a few dozen rows are enough.
    n_outputs : int, default=3
        Number of outputs of the random residual.
    max_atoms : int, default=50
        Largest number of atoms to check, the best first.
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
    pool, rng = as_pool(pool), np.random.default_rng(random_state)
    weight = rng.uniform(0.5, 2.0, size=X.shape[0])
    weight /= weight.sum()
    # The residual sums to zero as at the best intercept, so that constant columns have no gradient.
    residual = rng.standard_normal((X.shape[0], n_outputs)) * weight[:, None]
    residual -= residual.mean(axis=0)
    arrays = follow(weight, X, working_dtype(X)), follow(residual, X, working_dtype(X))
    before = _copy_data(X)
    for scale in ("std", "max", False):
        for fit_intercept in (True, False):
            options = {"scale": scale, "fit_intercept": fit_intercept, "random_state": random_state}
            case = _PoolCase(pool, X, *arrays, options, max_atoms)
            prepared = case.prepare()
            case = replace(case, subject=prepared.pool or pool)
            _check_count(case, prepared)
            _check_columns(case, prepared)
            _check_atoms(case, prepared)
            for rule in _RULES:
                _check_prices(case, prepared, rule)
                _check_scores(case, prepared, rule)
                _check_exclusion(case, prepared, rule)
                _check_shortlist(case, prepared, rule)
                _check_inputs(case, prepared, rule)
            _check_copies(case, prepared)
            _check_evaluation(case, prepared)
    _check_silent_rows(case)
    _check_strangers(case)
    case.require(np.array_equal(before, _copy_data(X)), "the data are not changed")


def _estimate_rounding(case: _PoolCase, values: np.ndarray) -> float:
    """Return the allowed difference of columns that are sums, relative to the largest term."""
    return 8.0 * case.eps() * float(np.max(np.abs(values), initial=0.0))


def _as_dense(X: Any) -> np.ndarray:
    return to_numpy(to_dense(X))


def _copy_data(X: object) -> np.ndarray:
    return np.array(_as_dense(X))


def _check_scores(case: _PoolCase, prepared: PreparedPool, rule: str) -> None:
    ranked = case.top(prepared, rule)
    case.require(len(ranked) <= case.max_atoms, "top returns at most m atoms")
    case.require(len({atom for atom, _ in ranked}) == len(ranked), "atoms differ, and hash")
    scores = np.asarray([score for _, score in ranked])
    case.require(np.all(scores > 0.0), "scores of offered atoms are positive")
    worth = np.asarray([score / math.sqrt(prepared.price(atom)) for atom, score in ranked])
    case.require(np.all(np.diff(worth) <= 0.0), "top returns the best atom first")
    for atom, score in ranked:
        _check_score(case, prepared, rule, atom, score)


def _check_score(
    case: _PoolCase, prepared: PreparedPool, rule: str, atom: Any, score: float
) -> None:
    residual = to_numpy(case.residual).astype(np.float64)
    rows = to_numpy(prepared.columns(atom)).astype(np.float64)
    gradient = rows @ residual
    wanted = np.abs(gradient).sum() if rule == "l1" else np.sqrt((gradient**2).sum())
    # Rounding of a sum of n products, and of the scaled columns themselves.
    size = float((np.abs(rows) @ np.abs(residual)).sum())
    atol = 4.0 * case.eps() * np.sqrt(rows.shape[1]) * size
    promise = f"the {rule} score of atom {atom!r} is the norm of its columns' gradient"
    case.close(score, wanted, promise, atol=atol)


def _is_same(
    case: _PoolCase, first: list[tuple[Any, float]], second: list[tuple[Any, float]]
) -> bool:
    """Return whether two lists have the same atoms, and scores that are equal up to rounding.

    Products of more rows may be summed in a different order.
    """
    if [atom for atom, _ in first] != [atom for atom, _ in second]:
        return False
    one, other = (np.asarray([score for _, score in part]) for part in (first, second))
    return bool(np.allclose(one, other, rtol=16.0 * case.eps(), atol=0.0))


def _check_exclusion(case: _PoolCase, prepared: PreparedPool, rule: str) -> None:
    ranked = case.top(prepared, rule)
    if len(ranked) < 2:
        return
    promise = "top(m=1) is the first of top(m)"
    best = prepared.top(case.residual, rule, 1, frozenset())
    case.require(_is_same(case, best, ranked[:1]), promise, f"got {best}, not {ranked[:1]}")
    excluded = frozenset(atom for atom, _ in ranked[::2])
    left = prepared.top(case.residual, rule, case.max_atoms, excluded)
    offered = [atom for atom, _ in left]
    case.require(not excluded & set(offered), "excluded atoms are not offered")
    if case.pool.grows:
        return
    wanted = [atom for atom, _ in ranked[1::2]]
    promise = "excluding atoms leaves the order of the others"
    case.require(offered[: len(wanted)] == wanted, promise, f"got {offered}, not {wanted}")


def _check_shortlist(case: _PoolCase, prepared: PreparedPool, rule: str) -> None:
    listed = prepared.shortlist(case.residual, rule, 8, frozenset())
    atoms = [atom for atom, _ in listed]
    case.require(len(listed) <= 8, "shortlist returns at most m atoms")
    case.require(len(set(atoms)) == len(atoms), "atoms of a shortlist differ")
    best = prepared.top(case.residual, rule, 1, frozenset())
    promise = "a shortlist begins with the best atom"
    case.require(_is_same(case, listed[:1], best), promise, f"got {listed[:1]}, not {best}")
    for atom, score in listed:
        _check_score(case, prepared, rule, atom, score)
    left = prepared.shortlist(case.residual, rule, 8, frozenset(atoms))
    promise = "excluded atoms are not on a shortlist"
    case.require(not {atom for atom, _ in left} & set(atoms), promise)


def _check_inputs(case: _PoolCase, prepared: PreparedPool, rule: str) -> None:
    keywords = inspect.signature(prepared.top).parameters
    case.require("inputs" in keywords, "top takes the keyword inputs")
    ranked = case.top(prepared, rule)
    for some in (ranked[:1], ranked[:2], ranked[-1:]):
        inputs = frozenset(column for atom, _ in some for column in case.read(atom))
        found = case.top(prepared, rule, inputs=inputs)
        for atom, score in found:
            case.require(
                case.read(atom) <= inputs,
                "with inputs, top offers only atoms that read these columns",
                f"atom {atom!r} reads {sorted(case.read(atom))}, and inputs are {sorted(inputs)}",
            )
            _check_score(case, prepared, rule, atom, score)
        fitting = {atom for atom, _ in ranked if case.read(atom) <= inputs}
        offered = {atom for atom, _ in found}
        missed = set() if case.pool.grows else fitting - offered
        # Scores may be rounded differently here, so the last atom of a full list may differ.
        promise = "with inputs, top offers all atoms that read only these columns"
        case.require(not missed or len(offered) == case.max_atoms, promise, f"not {missed}")
    case.require(not case.top(prepared, rule, inputs=frozenset()), "every atom reads a column")


def _check_prices(case: _PoolCase, prepared: PreparedPool, rule: str) -> None:
    if not prepared.priced:
        return
    ranked = case.top(prepared, rule)
    prices = [prepared.price(atom) for atom, _ in ranked]
    good = all(0.0 < price < math.inf for price in prices)
    case.require(good, "prices are positive and finite", f"got {prices}")
    if not prices:
        return
    budget = float(np.median(prices))
    found = {atom: prepared.price(atom) for atom, _ in case.top(prepared, rule, budget=budget)}
    promise = f"with budget={budget:g}, top offers no atom that costs more"
    case.require(all(price <= budget for price in found.values()), promise, f"got {found}")
    missed = [atom for atom, _ in ranked if prepared.price(atom) <= budget and atom not in found]
    case.require(not missed, "with a budget, top offers all atoms within it", f"not {missed}")


def _check_count(case: _PoolCase, prepared: PreparedPool) -> None:
    count = getattr(prepared, "n_usable", None)
    good = isinstance(count, (int, np.integer)) and count >= len(case.top(prepared))
    promise = "n_usable, bound to data, is the number of atoms that can be chosen"
    case.require(good, promise, f"got {count!r}")


def _check_columns(case: _PoolCase, prepared: PreparedPool) -> None:
    atoms = [atom for atom, _ in case.top(prepared)]
    blocks = [prepared.columns(atom) for atom in atoms]
    n_samples = case.X.shape[0]
    for atom, block in zip(atoms, blocks, strict=True):
        case.require(
            len(block.shape) == 2 and block.shape[0] >= 1 and block.shape[1] == n_samples,
            f"columns({atom!r}) has shape (width, {n_samples})",
            f"got {tuple(block.shape)}",
        )
        promise = "columns have the dtype of the weights"
        case.require(block.dtype == case.weight.dtype, promise, f"got {block.dtype}")
        scale = to_numpy(prepared.scale(atom))
        case.require(scale.shape == (block.shape[0],), "scale has one entry per column")
        case.require(np.all(np.isfinite(scale) & (scale > 0.0)), "scales are positive")
        values = _as_dense(case.pool.evaluate(case.X, [atom])) / scale[None, :]
        promise = f"evaluate on the training data, divided by scale, equals columns({atom!r})"
        rtol = 8.0 * case.eps()
        atol = _estimate_rounding(case, values) + 1e-300
        case.close(to_numpy(block).T, values, promise, rtol=rtol, atol=atol)
    if not atoms:
        return
    together = _as_dense(case.pool.evaluate(case.X, atoms))
    apart = np.concatenate(
        [_as_dense(case.pool.evaluate(case.X, [atom])) for atom in atoms], axis=1
    )
    promise = "evaluate puts the columns of several atoms side by side"
    case.close(together, apart, promise, atol=_estimate_rounding(case, apart))
    labels = case.pool.labels(atoms)
    case.require(len(labels) == len(atoms), "labels names every atom", f"got {labels}")


def _check_evaluation(case: _PoolCase, prepared: PreparedPool) -> None:
    """Check that rows are evaluated independently, and that shortcuts give the same scores."""
    pool, X = case.pool, case.X
    atoms = [atom for atom, _ in case.top(prepared)][:_ATOMS_EVALUATED]
    if not atoms:
        return
    values = pool.evaluate(X, atoms)
    rows = slice(0, X.shape[0] // 2)
    part, dense = _as_dense(pool.evaluate(X[rows, :], atoms)), _as_dense(values)
    promise = "evaluate depends on each row alone"
    case.close(part, dense[rows], promise, atol=_estimate_rounding(case, dense))
    cost = pool.total_cost(atoms, X.shape[1], 3)
    good = all(type(count) is int and count >= 0 for count in cost)
    case.require(good, "total_cost counts operations", f"got {cost!r}")
    if isinstance(X, np.ndarray):
        rng = np.random.default_rng(0)
        weights, intercept = rng.standard_normal((dense.shape[1], 3)), rng.standard_normal(3)
        scorer, scores = pool.scorer(atoms, weights, intercept), dense @ weights + intercept
        size = float(np.max(np.abs(dense) @ np.abs(weights))) + 4.0
        atol = 64.0 * case.eps() * size
        case.close(scorer(X), scores, "scorer gives the weighted sums", atol=atol)
        promise = "scorer.row gives the weighted sums of one row"
        case.close(scorer.row(X[0]), scores[0], promise, atol=atol)


def _check_silent_rows(case: _PoolCase) -> None:
    """Check that a pool works if some rows have no weight."""
    weight, residual = to_numpy(case.weight).copy(), to_numpy(case.residual).copy()
    weight[::4] = 0.0
    residual[::4] = 0.0
    dtype = working_dtype(case.X)
    weight, residual = (follow(part, case.X, dtype) for part in (weight, residual))
    other = replace(case, weight=weight, residual=residual)
    prepared = other.prepare()
    for rule in _RULES:
        _check_scores(other, prepared, rule)


def _check_copies(case: _PoolCase, prepared: PreparedPool) -> None:
    wanted, again = case.top(prepared), case.top(prepared)
    case.require(_is_same(case, again, wanted), "top returns the same result when called again")
    for pool in (case.pool, *Contract(case.pool.given).copies()):
        case.require(
            _is_same(case, case.top(case.prepare(pool)), wanted),
            "preparing it again, or a copy, gives the same atoms",
        )


def _check_atoms(case: _PoolCase, prepared: PreparedPool) -> None:
    pool, d = case.pool, case.X.shape[1]
    names = [f"column {j}" for j in range(d)]
    atoms = [atom for atom, _ in case.top(prepared)]
    atoms = atoms[:_ATOMS_EVALUATED] + atoms[_ATOMS_EVALUATED:][-_ATOMS_EVALUATED:]
    apart = [to_numpy(pool.feature_indices([atom], d)) for atom in atoms]
    together = to_numpy(pool.feature_indices(atoms, d))
    case.require(together.dtype.kind == "i", "feature_indices returns an array of integers")
    same = together.tolist() == [column for part in apart for column in part.tolist()]
    case.require(same, "feature_indices puts the columns of several atoms in a row")
    for atom in atoms:
        case.require(_is_plain(atom), f"atom {atom!r} is made of numbers, texts and tuples")
        width = prepared.columns(atom).shape[0]
        found = pool.n_columns(atom, d)
        promise = f"n_columns({atom!r}) is the number of its columns, {width}"
        case.require(type(found) is int and found == width, promise, f"got {found!r}")
        read = case.read(atom)
        promise = f"feature_indices({atom!r}) are columns of the data"
        case.require(read and read <= set(range(d)), promise, f"got {sorted(read)}")
        promise = f"inputs({atom!r}) are the columns of feature_indices"
        case.require(prepared.inputs(atom) == read, promise, f"got {prepared.inputs(atom)}")
        _check_words(case, atom, names)
        _check_reads(case, atom, read)


def _is_plain(atom: Any) -> bool:
    if type(atom) is tuple:
        return all(map(_is_plain, atom))
    return type(atom) in (int, float, str)


def _check_words(case: _PoolCase, atom: Any, names: list[str]) -> None:
    words = case.pool.describe(atom, names)
    good = type(words) is str and bool(words.strip()) and "\n" not in words
    case.require(good, f"describe({atom!r}) is one line of text", f"got {words!r}")
    cost = case.pool.cost(atom, case.X.shape[1])
    counts = (cost.multiply_adds, cost.comparisons)
    good = all(type(count) is int and count >= 0 for count in counts)
    case.require(good, f"cost({atom!r}) counts operations", f"got {cost!r}")


def _check_reads(case: _PoolCase, atom: Any, read: set[int]) -> None:
    """Check that an atom stays the same if the rows of all other columns are reversed."""
    others = [column for column in range(case.X.shape[1]) if column not in read]
    changed = _copy_data(case.X)
    changed[:, others] = changed[::-1][:, others]
    if is_sparse(case.X):
        other: Any = type(case.X)(changed)
    else:
        other = namespace(case.X).asarray(changed, device=device_of(case.X))
    found, wanted = (_as_dense(case.pool.evaluate(X, [atom])) for X in (other, case.X))
    promise = f"atom {atom!r} reads no columns but those of feature_indices"
    case.close(found, wanted, promise, atol=_estimate_rounding(case, wanted))


def _check_strangers(case: _PoolCase) -> None:
    d = case.X.shape[1]
    for stranger in _NO_ATOMS:
        try:
            found = case.pool.n_columns(stranger, d)
        except ValueError:
            continue
        promise = f"n_columns raises a ValueError for {stranger!r}, which is no atom"
        case.require(False, promise, f"got {found!r}")
