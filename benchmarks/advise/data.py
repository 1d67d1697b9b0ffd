"""Synthetic designs in which one norm should win, and real data, for ``benchmarks.advise``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

TESTED = 3000  # rows of a synthetic design
REAL = (
    "iris", "wine", "glass", "vehicle", "vowel", "segment", "dna", "satimage", "pendigits",
)  # fmt: skip


@dataclass(frozen=True)
class Design:
    """Training and test rows, and groups of columns if there are any."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    groups: np.ndarray | None = None


def _cut(X: np.ndarray, y: np.ndarray, n: int, groups: np.ndarray | None = None) -> Design:
    return Design(X[:n], y[:n], X[n:], y[n:], groups)


def _draw_labels(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def draw_experts(rng: np.random.Generator) -> Design:
    """Draw labels that are binary numbers spelt by a few columns of signs, some labels wrong."""
    n, d, k = 300, 60, 8
    X = rng.choice([-1.0, 1.0], (n + TESTED, d))
    y = (X[:, :3] > 0.0) @ (2 ** np.arange(3))
    wrong = rng.random(len(y)) < 0.1
    y[wrong] = rng.integers(k, size=int(wrong.sum()))
    return _cut(X, y, n)


def draw_low_rank_tasks(rng: np.random.Generator) -> Design:
    """Draw regression outputs that share two directions."""
    n, d, k = 60, 40, 15
    X = rng.standard_normal((n + TESTED, d))
    W = rng.standard_normal((d, 2)) @ rng.standard_normal((2, k)) / np.sqrt(d)
    return _cut(X, X @ W + rng.standard_normal((len(X), k)), n)


def draw_low_rank_classes(rng: np.random.Generator) -> Design:
    """Draw classes that share two directions."""
    n, d, k = 300, 60, 15
    X = rng.standard_normal((n + TESTED, d))
    W = rng.standard_normal((d, 2)) @ rng.standard_normal((2, k)) * 4.5 / np.sqrt(2 * d)
    return _cut(X, _draw_labels(X @ W, rng), n)


def draw_dense(rng: np.random.Generator) -> Design:
    """Draw data with small weights for all columns and classes."""
    n, d, k = 200, 50, 5
    X = rng.standard_normal((n + TESTED, d))
    return _cut(X, _draw_labels(X @ (0.35 * rng.standard_normal((d, k))), rng), n)


def draw_entries(rng: np.random.Generator) -> Design:
    """Draw outputs that share nothing, each with a few columns of its own."""
    n, d, k = 60, 80, 10
    X, W = rng.standard_normal((n + TESTED, d)), np.zeros((d, k))
    for output in range(k):
        W[rng.choice(d, 4, replace=False), output] = rng.choice([-1.0, 1.0], 4)
    return _cut(X, X @ W + rng.standard_normal((len(X), k)), n)


def draw_text(rng: np.random.Generator) -> Design:
    """Draw rows with few nonzero entries, and weights for all columns."""
    n, d, k = 300, 400, 5
    share = 1.0 / np.sqrt(np.arange(1, d + 1))
    share = np.minimum(0.9, 20.0 * share / share.sum())
    X = (rng.random((n + TESTED, d)) < share).astype(float)
    return _cut(X, _draw_labels(X @ (0.8 * rng.standard_normal((d, k))), rng), n)


def draw_blocks(rng: np.random.Generator) -> Design:
    """Draw data in which two of twenty groups of columns matter."""
    n, d, k = 100, 160, 4
    groups = np.repeat(np.arange(20), 8)
    X, W = rng.standard_normal((n + TESTED, d)), np.zeros((d, k))
    for group in rng.choice(20, 2, replace=False):
        W[groups == group] = 0.5 * rng.standard_normal((8, k))
    return _cut(X, X @ W + 2.0 * rng.standard_normal((len(X), k)), n, groups)


def draw_shared_support(rng: np.random.Generator) -> Design:
    """Draw 80 rows in which six of 600 columns matter to all outputs."""
    n, d, k = 80, 600, 6
    X, W = rng.standard_normal((n + TESTED, d)), np.zeros((d, k))
    W[rng.choice(d, 6, replace=False)] = 1.2 * rng.standard_normal((6, k))
    return _cut(X, X @ W + 2.0 * rng.standard_normal((len(X), k)), n)


def draw_plenty(rng: np.random.Generator) -> Design:
    """Draw many rows with few columns, for which the norms should tie."""
    n, d, k = 6000, 10, 4
    X = rng.standard_normal((n + TESTED, d))
    return _cut(X, _draw_labels(X @ rng.standard_normal((d, k)), rng), n)


def draw_noise(rng: np.random.Generator) -> Design:
    """Draw labels that are independent of the rows, so that no norm should help."""
    n, d, k = 200, 40, 4
    X = rng.standard_normal((n + TESTED, d))
    return _cut(X, rng.integers(k, size=len(X)), n)


DESIGNS: dict[str, Callable[[np.random.Generator], Design]] = {
    draw.__name__.removeprefix("draw_").replace("_", "-"): draw
    for draw in (
        draw_experts, draw_low_rank_tasks, draw_low_rank_classes, draw_dense, draw_entries,
        draw_text, draw_blocks, draw_shared_support, draw_plenty, draw_noise,
    )
}  # fmt: skip
#: The verdict that advice must give on a design, in addition to its choice.
VERDICTS = {"plenty": ("tie",), "noise": ("nothing",)}


def draw_real(name: str, seed: int) -> Design:
    """Return a random half of a stored dataset for training (at most 3000 rows), and the rest."""
    from sklearn.model_selection import train_test_split

    from mixnorm.datasets import load

    found = load(name)
    X, y = np.asarray(found.X, dtype=np.float64), np.asarray(found.y)
    if "X_test" in found:
        X = np.concatenate([X, np.asarray(found.X_test, dtype=np.float64)])
        y = np.concatenate([y, np.asarray(found.y_test)])
    n = min(len(y) // 2, 3000)
    a, b, c, d = train_test_split(X, y, train_size=n, stratify=y, random_state=seed)
    return Design(a, c, b, d)
