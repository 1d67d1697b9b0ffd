"""The methods of ``benchmarks.mkl_table1``, which choose their parameters on training rows.

All have the same folds. Among equal scores the smallest ``C`` wins, then the widest kernel.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.mkl.data import WIDTHS, Kernels, Rows, compute_kernels, make_split
from benchmarks.mkl.methods import Outcome, collect_facts, make_folds, make_himalaya

LAMBDAS = (0.1, 0.5, 0.9)  # EasyMKL's
TOL = 1e-2  # relative gap of our machines, the same on one kernel and on several

Labels = np.ndarray
# Kernels of the training rows, their labels, kernels of the test rows, C.
Machine = Callable[[np.ndarray, Labels, np.ndarray, float], Labels]


@dataclass(frozen=True)
class Grid:
    """Values to choose from."""

    Cs: tuple[float, ...]
    tails: tuple[int, ...]
    betas: tuple[float, ...]


GRIDS = {
    "few": Grid(
        Cs=tuple(2.0**power for power in range(1, 14, 3)),
        tails=(2, 32),
        betas=(1e-3, 1e-2),
    ),
    "short": Grid(
        Cs=tuple(2.0**power for power in range(-2, 14, 3)),
        tails=(2, 8, 32),
        betas=(1e-4, 1e-3, 1e-2, 1e-1),
    ),
    "paper": Grid(
        Cs=tuple(2.0**power for power in range(-2, 13, 2)),
        tails=(2, 4, 8, 16),
        betas=tuple(10.0**power for power in range(-4, 2)),
    ),
}


@dataclass(frozen=True)
class Problem:
    """One split: rows, kernels, folds of the training rows, and the grid."""

    rows: Rows
    kernels: Kernels
    folds: Sequence[tuple[np.ndarray, np.ndarray]]
    grid: Grid

    @property
    def y(self) -> Labels:
        """Labels of the training rows."""
        return self.rows.y


def make_problem(data: str, seed: int, rows: int, n_folds: int, grid: str) -> Problem:
    """Return one split of a dataset; ``rows`` is the number of rows of satimage."""
    found = make_split(data, seed, rows if data == "satimage" else 0)
    return Problem(found, compute_kernels(found), make_folds(found.y, n_folds, seed), GRIDS[grid])


# --- machines on one kernel


def predict_one_vs_one(K: np.ndarray, y: Labels, K_test: np.ndarray, cost: float) -> Labels:
    """Predict by LIBSVM, one class against one."""
    from sklearn.svm import SVC

    found: Labels = SVC(C=cost, kernel="precomputed").fit(K, y).predict(K_test)
    return found


def predict_one_vs_rest(K: np.ndarray, y: Labels, K_test: np.ndarray, cost: float) -> Labels:
    """Predict by LIBSVM, one class against the rest."""
    return choose_class(((K, K_test) for _ in np.unique(y)), y, cost)


def choose_class(
    pairs_of: Iterator[tuple[np.ndarray, np.ndarray]], y: Labels, cost: float
) -> Labels:
    """Return the class with the highest score; each class has its own kernel."""
    from sklearn.svm import SVC

    classes = np.unique(y)
    scores = [
        SVC(C=cost, kernel="precomputed").fit(K, y == label).decision_function(K_test)
        for label, (K, K_test) in zip(classes, pairs_of, strict=True)
    ]
    found: Labels = classes[np.argmax(scores, axis=0)]
    return found


def predict_joint(K: np.ndarray, y: Labels, K_test: np.ndarray, cost: float) -> Labels:
    """Predict by our machine for all classes at once, the problem that GMNP solves."""
    from mixnorm import KernelMulticlassSVC

    model = KernelMulticlassSVC(C=cost, kernel="precomputed", tol=TOL)
    found: Labels = model.fit(K, y).predict(K_test)
    return found


def predict_linear(X: np.ndarray, y: Labels, X_test: np.ndarray, cost: float) -> Labels:
    """Predict by our linear machine for all classes at once, with columns for kernels."""
    from mixnorm import LinearMulticlassSVC

    found: Labels = LinearMulticlassSVC(C=cost, tol=TOL).fit(X, y).predict(X_test)
    return found


# --- methods


def choose_single(machine: Machine) -> Callable[[Problem], Outcome]:
    """Return the method that chooses a width and ``C`` for a machine on one kernel."""

    def run(given: Problem) -> Outcome:
        K, K_test = given.kernels.K[::-1], given.kernels.K_test[::-1]  # wide ones first
        scores = np.array([score_on_folds(machine, matrix, given) for matrix in K])
        at_cost, which = find_best(scores.T)
        cost = given.grid.Cs[at_cost]
        facts = {"width": WIDTHS[::-1][which], "C": cost, "score": scores[which, at_cost]}
        return Outcome(machine(as_double(K[which]), given.y, as_double(K_test[which]), cost), facts)

    return run


def choose_average(given: Problem) -> Outcome:
    """Choose ``C`` for LIBSVM on the average kernel."""
    K, K_test = (
        np.asarray(np.mean(part, axis=0, dtype=np.float64))
        for part in (given.kernels.K, given.kernels.K_test)
    )
    scores = score_on_folds(predict_one_vs_one, K, given)
    best = int(np.argmax(scores))
    cost = given.grid.Cs[best]
    return Outcome(predict_one_vs_one(K, given.y, K_test, cost), {"C": cost, "score": scores[best]})


def choose_linear(given: Problem) -> Outcome:
    """Choose ``C`` for the linear machine for all classes at once."""
    X, scores = given.rows.X, np.zeros(len(given.grid.Cs))
    for train, test in given.folds:
        for place, cost in enumerate(given.grid.Cs):
            labels = predict_linear(X[train], given.y[train], X[test], cost)
            scores[place] += np.mean(labels == given.y[test]) / len(given.folds)
    best = int(np.argmax(np.round(scores, 12)))
    cost = given.grid.Cs[best]
    labels = predict_linear(X, given.y, given.rows.X_test, cost)
    return Outcome(labels, {"C": cost, "score": scores[best]})


def choose_easymkl(given: Problem) -> Outcome:
    """Choose parameters of MKLpy's weights, one class against the rest, with LIBSVM on each sum.

    MKLpy's own wrapper copies all kernels for every class; the weights here are the same.
    """
    scores = np.zeros((len(given.grid.Cs), len(LAMBDAS)))
    for train, test in given.folds:
        K, K_test = (given.kernels.K[:, rows[:, None], train] for rows in (train, test))
        for place, strength in enumerate(LAMBDAS):
            sums = compute_easy_sums(K, K_test, given.y[train], strength)
            for at_cost, cost in enumerate(given.grid.Cs):
                labels = choose_class(iter(sums), given.y[train], cost)
                scores[at_cost, place] += np.mean(labels == given.y[test]) / len(given.folds)
    at_cost, place = find_best(scores)
    cost, strength = given.grid.Cs[at_cost], LAMBDAS[place]
    sums = compute_easy_sums(given.kernels.K, given.kernels.K_test, given.y, strength)
    facts = {"C": cost, "lambda": strength, "score": scores[at_cost, place]}
    return Outcome(choose_class(iter(sums), given.y, cost), facts)


def compute_easy_sums(
    K: np.ndarray, K_test: np.ndarray, y: Labels, strength: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return EasyMKL's sums of kernels for every class against the rest."""
    import torch
    from MKLpy.algorithms import EasyMKL
    from sklearn.svm import SVC

    torch.set_num_threads(1)
    matrices = [torch.from_numpy(matrix.astype(np.float64)) for matrix in K]
    found = []
    for label in np.unique(y):
        target = torch.from_numpy(np.where(y == label, 1, -1))
        learner = EasyMKL(lam=strength, learner=SVC())
        made = learner.combine_kernels(matrices, target)
        weights = made.weights.numpy()
        test = np.tensordot(weights.astype(np.float32), K_test, axes=1)
        found.append((made.ker_matrix.numpy(), as_double(test)))
    return found


def choose_himalaya(given: Problem) -> Outcome:
    """Choose the best of 20 random draws of kernel weights for ridge on one-hot targets."""
    targets = np.eye(int(given.y.max()) + 1)[given.y]
    model = make_himalaya(given.y, list(given.folds))
    model.fit(as_double(given.kernels.K), targets)
    return Outcome(np.argmax(model.predict(as_double(given.kernels.K_test)), axis=1))


def choose_ours(name: str, **lists: Any) -> Callable[[Problem], Outcome]:
    """Return the method of one of our ``...CV`` classes; a string names a part of the grid."""

    def run(given: Problem) -> Outcome:
        import mixnorm

        values = {
            key: getattr(given.grid, value) if isinstance(value, str) else value
            for key, value in lists.items()
        }
        made = getattr(mixnorm, name)(
            kernel="precomputed", Cs=given.grid.Cs, cv=given.folds, **values
        )
        model = made.fit(given.kernels.K, given.y)
        facts = collect_facts(model) | model.best_params_ | {"score": model.best_score_}
        return Outcome(model.predict(given.kernels.K_test), facts)

    return run


# --- helpers


def score_on_folds(machine: Machine, K: np.ndarray, given: Problem) -> np.ndarray:
    """Return the mean accuracy on the folds for every ``C``; a fold's kernel is cut out once."""
    scores = np.zeros(len(given.grid.Cs))
    for train, test in given.folds:
        own, other = (as_double(K[np.ix_(rows, train)]) for rows in (train, test))
        for place, cost in enumerate(given.grid.Cs):
            labels = machine(own, given.y[train], other, cost)
            scores[place] += np.mean(labels == given.y[test])
    return np.round(scores / len(given.folds), 12)


def find_best(scores: np.ndarray) -> tuple[int, int]:
    """Return the index of the first largest entry, in row-major order."""
    first, second = np.unravel_index(int(np.argmax(np.round(scores, 12))), scores.shape)
    return int(first), int(second)


def as_double(K: np.ndarray) -> np.ndarray:
    """Return an array in double precision and C order, which LIBSVM and himalaya take."""
    return np.ascontiguousarray(K, dtype=np.float64)


METHODS: dict[str, Callable[[Problem], Outcome]] = {
    "single-ovo": choose_single(predict_one_vs_one),
    "single-ovr": choose_single(predict_one_vs_rest),
    "average": choose_average,
    "easymkl": choose_easymkl,
    "himalaya": choose_himalaya,
    "lmc": choose_linear,
    "gmnp": choose_single(predict_joint),
    "l1": choose_ours("MKLClassifierCV", ps=(1.0,)),
    "l2": choose_ours("MKLClassifierCV", ps=(2.0,)),
    "ufo": choose_ours("UFOMKLClassifierCV", betas="betas"),
    "conv": choose_ours("ConvMKLClassifierCV", ps=(1.2,), tails="tails"),
    "smsd": choose_ours("SMSDMKLClassifierCV", betas="betas", tails="tails"),
}
NEEDS = {"easymkl": "MKLpy", "himalaya": "himalaya"}


def is_available(method: str) -> bool:
    """Return whether the libraries of a method are installed."""
    return importlib.util.find_spec(NEEDS.get(method, "mixnorm")) is not None
