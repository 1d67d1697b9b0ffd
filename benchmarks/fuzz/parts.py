"""Inputs for the parts of a learner: norms, losses, kernels, pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.fuzz.tables import (
    SCALES,
    draw_chance,
    draw_columns,
    draw_log_uniform,
    draw_table,
    pick,
    scale_columns,
)
from benchmarks.fuzz.values import SHARED, find_values
from benchmarks.fuzz.verdict import Outcome, judge, require, require_close, require_finite
from mixnorm import losses
from mixnorm.norms import MixedNorm, SchattenNorm, TraceNorm
from mixnorm.testing import check_loss, check_norm, check_pool

_EXPONENTS = (1, 1.1, 1.5, 2, 3, 10, np.inf)


def _draw_matrix(rng: np.random.Generator) -> np.ndarray:
    """Return a small matrix, often with ties, zeros, or an extreme scale."""
    W = draw_columns(rng, int(rng.integers(1, 9)), int(rng.integers(1, 6)))
    if draw_chance(rng, 0.3):
        W = np.round(W, 1)
    if draw_chance(rng, 0.3):
        W = np.clip(W, -1e3, 1e3) * pick(rng, SCALES)
    return W


def draw_norm(rng: np.random.Generator) -> Outcome:
    """Try a norm, its dual, its prox and its projection on a matrix."""
    kinds: list[Callable[[], Any]] = [
        lambda: MixedNorm(pick(rng, _EXPONENTS), pick(rng, _EXPONENTS)),
        lambda: SchattenNorm(pick(rng, _EXPONENTS)),
        TraceNorm,
    ]
    norm, W = pick(rng, kinds)(), _draw_matrix(rng)
    amount, seed = draw_log_uniform(rng, 1e-3, 1e3), int(rng.integers(1000))

    def work() -> None:
        if draw_chance(rng, 0.2):
            check_norm(norm, shape=(W.shape[0] + 1, W.shape[1] + 1), random_state=seed)
            return
        largest = float(np.max(np.abs(W)))
        value, dual = float(norm.value(W)), float(norm.dual(W))
        require(value >= 0 and dual >= 0, "a norm below zero")
        require(np.isfinite(value) or largest > 1e290, "a norm that is not finite")
        require(largest == 0 or value > 0, "the norm of a matrix that is not zero is zero")
        for name in ("prox", "project"):
            if hasattr(norm, name) and np.isfinite(value):
                step = amount * largest
                found = np.asarray(getattr(norm, name)(W, step))
                require_finite(found, name)
                require(found.shape == W.shape, f"{name} changes the shape")
                if name == "project" and np.isfinite(step):
                    inside = float(norm.value(found))
                    require(inside <= step * (1 + 1e-6) + 1e-300, "a projection is not in the ball")

    return judge(
        f"norm {type(norm).__name__}",
        work,
        names=("W", "norm", "inner", "outer"),
        notes=[repr(norm)],
    )


def draw_loss(rng: np.random.Generator) -> Outcome:
    """Try a loss: its contract, or its value on extreme scores."""
    kinds = [
        name
        for name in losses.__all__
        if isinstance(getattr(losses, name), type)
        and hasattr(getattr(losses, name), "value_and_residual")
        and not getattr(getattr(losses, name), "_is_protocol", False)
    ]
    name = pick(rng, sorted(kinds))
    kind = getattr(losses, name)
    options = {
        "Huber": {"delta": draw_log_uniform(rng, 1e-6, 1e6)},
        "EpsilonInsensitive": {"epsilon": draw_log_uniform(rng, 1e-6, 1e6)},
        "MarginSoftmax": {"margin": draw_log_uniform(rng, 1e-3, 100)},
    }.get(name, {})
    loss, rows, seed = kind(**options), int(rng.integers(1, 9)), int(rng.integers(1000))

    def work() -> None:
        if draw_chance(rng, 0.3) and all(0.1 <= value <= 10 for value in options.values()):
            check_loss(loss, random_state=seed)
            return
        outputs = int(rng.integers(2, 5))
        joint = name.startswith("Multi") or name == "MarginSoftmax"
        raw: Any = (
            np.arange(rows) % outputs if joint else np.sign(rng.standard_normal((rows, outputs)))
        )
        scores = rng.standard_normal((rows, outputs)) * pick(rng, (1.0, *SCALES[:9]))
        target = loss.encode(raw, outputs, scores)
        value, residual = loss.value_and_residual(scores, target, np.full(rows, 1 / rows))
        require(float(value) >= 0, "a loss below zero")
        require_finite(value, "value")
        require_finite(residual, "residual")

    return judge(f"loss {name}", work, names=("scores", "loss", "target"), notes=[repr(loss)])


def draw_kernels(rng: np.random.Generator) -> Outcome:
    """Fit a bank, and check that its matrices are symmetric and that rows agree with batches."""
    table = draw_table(rng, labels=False, weights=False, sparse_too=False, spoiled=0.0)
    bank, X = SHARED["bank"][0](rng), table.dense
    assert X is not None
    X = X[:60]

    def work() -> None:
        fitted = bank.fit(X)
        count = len(fitted.names)
        shares = rng.uniform(0, 1, count)
        K = np.asarray(fitted.combine(X, shares), dtype=float)
        require_finite(K, "a kernel")
        require(K.shape == (len(X), len(X)), f"a kernel of shape {K.shape}")
        require_close(K, K.T, "a kernel and its transpose", 1e-5)
        row = np.asarray(fitted.combine(X[:1], shares), dtype=float)
        require_close(row[0], K[0], "a row and the matrix", 1e-5)

    return judge(
        "kernel bank", work, names=("bank", "kernels"), notes=[*table.notes, repr(bank)[:200]]
    )


def draw_pool(rng: np.random.Generator) -> Outcome:
    """Check the contract of a pool on drawn data."""
    entry = find_values("ShareBoostClassifier", "pool")
    assert entry is not None
    pool = entry[0](rng)
    while pool is None:
        pool = entry[0](rng)
    X, note = scale_columns(
        rng, draw_columns(rng, int(rng.integers(3, 40)), int(rng.integers(1, 6)))
    )
    extreme = bool(note)
    given = sparse.csr_array(X) if draw_chance(rng, 0.2) and not extreme else X

    def work() -> None:
        if not extreme:
            check_pool(pool, given, random_state=int(rng.integers(1000)))
            return
        options = {"random_state": 0} if getattr(pool, "draws", False) else {}
        prepared = pool.prepare(given, scale="std", fit_intercept=True, **options)
        require(prepared is not None, "nothing was prepared")

    return judge(f"pool {type(pool).__name__}", work, names=("pool",), notes=[repr(pool), note])
