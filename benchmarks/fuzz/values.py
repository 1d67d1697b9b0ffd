"""Parameter values to draw: allowed ones, and ones that must be refused.

A value may be a function of a random generator. It is called for each draw, so that no two inputs
share an object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fuzz.tables import draw_log_uniform, pick
from mixnorm import GreedyOptions
from mixnorm.kernels import (
    ChiSquaredKernel,
    ExponentialTensorKernel,
    GaussianKernel,
    KernelBank,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
    gaussian_bank,
)
from mixnorm.losses import EpsilonInsensitive, Huber, MarginSoftmax
from mixnorm.norms import MixedNorm, SchattenNorm
from mixnorm.pools import Boxes, Columns, Pieces, Products, Stumps, Union

Draw = Callable[[np.random.Generator], Any]


def draw_between(low: float, high: float) -> Draw:
    """Return a function that draws a positive number, uniform in its logarithm."""
    return lambda rng: draw_log_uniform(rng, low, high)


def draw_one_of(*values: Any) -> Draw:
    """Return a function that draws one of the values, and calls it if it is a function."""

    def draw(rng: np.random.Generator) -> Any:
        value = pick(rng, values)
        return value(rng) if callable(value) else value

    return draw


def _draw_pool(rng: np.random.Generator) -> Any:
    simple: list[Callable[[], Any]] = [
        Columns,
        Products,
        lambda: Stumps(max_bins=pick(rng, (2, 7, 255, None))),
        lambda: Boxes(depth=pick(rng, (1, 2, 3)), max_bins=pick(rng, (2, 16)), beam=4),
        lambda: Pieces(n_centers=5, n_radii=3),
    ]
    if rng.random() < 0.2:
        return Union([pick(rng, simple)() for _ in range(2)])
    return pick(rng, simple)()


def _draw_bank(rng: np.random.Generator) -> KernelBank:
    kernels: list[Callable[[], Any]] = [
        lambda: GaussianKernel(draw_log_uniform(rng, 1e-3, 1e3), relative=bool(rng.integers(2))),
        lambda: LaplacianKernel(draw_log_uniform(rng, 1e-3, 1e3), relative=bool(rng.integers(2))),
        LinearKernel,
        lambda: PolynomialKernel(int(rng.integers(1, 6)), 1.0, float(rng.integers(2))),
        lambda: ChiSquaredKernel(draw_log_uniform(rng, 1e-3, 1e3)),
    ]
    kernels = kernels if rng.random() < 0.2 else kernels[:-1]  # the last takes no negative numbers
    chosen = [pick(rng, kernels)() for _ in range(int(rng.integers(1, 5)))]
    return KernelBank(
        chosen,
        normalize=pick(rng, ("trace", "trace", "unit", "tail", None)),
        dtype=pick(rng, ("float32", "float64")),
        factors=pick(rng, (None, None, None, "nystrom")),
        memory=pick(rng, (2**31, 2**31, 10_000)),
    )


NOT_POSITIVE = (0.0, -1.0, float("nan"), float("inf"), "a", None, [1.0])
NEGATIVE = (-1.0, float("nan"), float("inf"), "a", [1.0])
NOT_COUNTS = (0, -1, 1.5, "a", float("nan"))
NOT_BOOLS = ("yes", 2, None)
UNKNOWN = ("nonsense", 3, object())
NOT_SEEDS = ("a", -1, 1.5)
NOT_JOBS = (0, "a", 1.5)

#: Parameter -> (how to draw an allowed value, values that must be refused).
SHARED: dict[str, tuple[Draw, tuple[Any, ...]]] = {
    "tol": (draw_one_of(draw_between(1e-8, 0.5)), (-1.0, "a", float("nan"))),
    "max_iter": (draw_one_of(1, 2, 10, 1000), NOT_COUNTS),
    "fit_intercept": (draw_one_of(True, False), NOT_BOOLS),
    "standardize": (draw_one_of(True, False), NOT_BOOLS),
    "random_state": (draw_one_of(0, 7), NOT_SEEDS),
    "class_weight": (draw_one_of("balanced", None), ("uneven", 3)),
    "n_jobs": (draw_one_of(None, 1), NOT_JOBS),
    "one_standard_error": (draw_one_of(True, False), NOT_BOOLS),
    "cv": (draw_one_of(2, 3), ([], 0, 1, "a", -2)),
    "average": (draw_one_of(True, False), NOT_BOOLS),
    "shuffle": (draw_one_of(True, False), NOT_BOOLS),
    "C": (draw_one_of(draw_between(1e-8, 1e8)), NOT_POSITIVE),
    "p": (draw_one_of(1.0, 1.2, 2.0, 50.0), (0.5, float("nan"), "a")),
    "tail": (draw_one_of(1, 2, 8), (-1, 1.5, "a")),
    "floor": (draw_one_of(0.01, 1e-6, 1.0), (-1.0, "a", float("nan"))),
    "bank": (
        draw_one_of(_draw_bank, _draw_bank, lambda rng: gaussian_bank()),
        (3, "nonsense", LinearKernel),
    ),
    "beta": (draw_one_of(draw_between(1e-6, 1.0)), (-1.0, "a", float("nan"))),
    "solver": (draw_one_of("exact", "mirror"), UNKNOWN),
    "epochs": (draw_one_of(1, 3), NOT_COUNTS),
    "Cs": (draw_one_of((1.0,), (0.1, 10.0)), ((), (-1.0,), "a", (float("nan"),))),
    "ps": (draw_one_of((1.2,), (1.0, 2.0)), ((), (0.5,), "a")),
    "tails": (draw_one_of((2,), (1, 8)), ((), (-1,), "a")),
    "betas": (draw_one_of((0.01,), (1e-3, 0.1)), ((), (-1.0,), "a")),
    "radius": (draw_one_of(None, draw_between(1e-3, 1e3)), (-1.0, "a", float("nan"))),
    "scoring": (draw_one_of(None), ("nonsense", 3)),
    "kernel": (draw_one_of("bank"), ("nonsense", 3)),
}

NORMS = draw_one_of("l1,1", "l2,1", "l2,2", "linf,1", "trace", lambda rng: MixedNorm(2, 1))
BAD_NORMS = ("nonsense", 3, MixedNorm, lambda: MixedNorm(2, 0.5))
ALPHAS = draw_one_of(3, (0.1, 0.01), 1)
BAD_ALPHAS = (0, -1, (), (-1.0,), "a", (float("nan"),))

#: Option of the greedy engine -> as above.
_OPTIONS: dict[str, tuple[Draw, tuple[Any, ...]]] = {
    "rule": (draw_one_of("joint", "l1", "l2", "line", "column", "exact"), UNKNOWN),
    "swaps": (draw_one_of(0, 1, 2), (-1, 1.5, "a")),
    "scale": (draw_one_of("std", "max", True, False), ("nonsense", 3)),
    "penalty": (draw_one_of("ridge", "linf,1", "l1"), UNKNOWN),
    "backward": (draw_one_of(0, 2), (-1, 1.5, "a")),
    "tune": (draw_one_of(0), (-1, 1.5, "a")),
    "atoms_per_round": (draw_one_of(1, 3), NOT_COUNTS),
    "rounds_per_input": (draw_one_of(1, 2), NOT_COUNTS),
    "tol": SHARED["tol"],
    "max_iter": SHARED["max_iter"],
}


def _draw_options(rng: np.random.Generator) -> GreedyOptions | None:
    if rng.random() < 0.2:
        return None
    drawn = {name: draw(rng) for name, (draw, _) in _OPTIONS.items() if rng.random() < 0.3}
    return GreedyOptions(**drawn)


def _make_refused_options() -> list[GreedyOptions]:
    return [GreedyOptions(**{name: bad}) for name, (_, bads) in _OPTIONS.items() for bad in bads]


_GREEDY: dict[str, tuple[Draw, tuple[Any, ...]]] = {
    "n_features_to_select": (draw_one_of(None, 1, 2, 5, 10), (0, -1, 1.5, "a")),
    "alpha": (draw_one_of("auto", 0.0, draw_between(1e-10, 1e3)), (-1.0, "a", float("nan"), None)),
    "pool": (draw_one_of(None, _draw_pool, _draw_pool), (3, "nonsense")),
    "options": (_draw_options, ("l1", {}, *_make_refused_options())),
}
_SHAREBOOST = _GREEDY | {
    "max_inputs": (draw_one_of(None, 1, 3), (0, -1, "a")),
    "cost_budget": (draw_one_of(None), (-1.0, "a", float("nan"))),
}
_SEARCH = {
    "alphas": (draw_one_of(None, 0.1, (0.1, 0.001), ("auto", 0.1)), ((), (-1.0,), "a", -1.0))
}
_CLASS_LOSS = {
    "loss": (draw_one_of(None, "margin", "logistic", lambda rng: MarginSoftmax(2.0)), UNKNOWN)
}
_VALUE_LOSS = {"loss": (draw_one_of(None, "squared"), UNKNOWN)}
_NORM = {
    "norm": (NORMS, BAD_NORMS),
    "alpha": (draw_one_of(draw_between(1e-8, 1e3)), NEGATIVE),
}
_NORM_CLASS_LOSS = {
    "loss": (draw_one_of("logistic", "margin", "hinge", "squared_hinge"), UNKNOWN),
}
_NUMBERS = draw_one_of(
    "squared", "absolute", "huber", "epsilon_insensitive", lambda rng: Huber(0.1)
)
_ONLINE: dict[str, tuple[Draw, tuple[Any, ...]]] = {
    "norm": (
        draw_one_of(
            "l2,2",
            "l2,1",
            "l1,1",
            "trace",
            lambda rng: MixedNorm(2, 1.3),
            lambda rng: SchattenNorm(1.5),
        ),
        ("nonsense", 3),
    ),
    "learning_rate": (draw_one_of("auto"), UNKNOWN),
    "eta0": (draw_one_of(None, draw_between(1e-4, 10.0)), NOT_POSITIVE[:-2]),
    "scale": (draw_one_of(True, False), NOT_BOOLS),
    "conservative": (draw_one_of(0.0, 0.01, 0.9), (-1.0, "a", float("nan"))),
    "block_size": (draw_one_of(1, 3), NOT_COUNTS),
    "hash_features": (draw_one_of(None), (0, -1, 1.5, "a")),
}
_TENSOR: dict[str, tuple[Draw, tuple[Any, ...]]] = {
    "kernel": (
        draw_one_of(
            None,
            lambda rng: PolynomialTensorKernel(int(rng.integers(1, 4)), float(rng.integers(2))),
            lambda rng: ExponentialTensorKernel(),
            lambda rng: PowerSeriesTensorKernel(),
        ),
        ("nonsense", 3),
    ),
    "q": (draw_one_of(4, 2.5, 3, 6), (2, 1.0, "a", float("nan"))),
    "gamma": (draw_one_of(draw_between(1e-6, 1e6)), NOT_POSITIVE[:-1]),
    "gammas": (draw_one_of(3, (1.0, 10.0)), (0, (), (-1.0,), "a")),
    "representation": (draw_one_of("auto", "features", "tensor", "sampled", "low-rank"), UNKNOWN),
    "n_components": (draw_one_of(None, 5, 50), NOT_COUNTS),
    "solver": (draw_one_of("newton"), UNKNOWN),
}
_GREEDY_MKL: dict[str, tuple[Draw, tuple[Any, ...]]] = {
    "n_kernels": (draw_one_of(1, 3, 10), NOT_COUNTS),
    "algorithm": (draw_one_of("gomp", "l1", "l2"), UNKNOWN),
    "alpha": (draw_one_of(draw_between(1e-10, 1e3)), NOT_POSITIVE[1:]),
    "step": (draw_one_of("line", "unit"), UNKNOWN),
    "n_steps": (draw_one_of(None, 3), NOT_COUNTS),
    "scan": (draw_one_of("auto", "exact", "factors"), UNKNOWN),
    "rank": (draw_one_of(2, 64), NOT_COUNTS),
}
_MACHINE_LOSS = {"loss": (draw_one_of("hinge", "squared_hinge"), UNKNOWN)}

#: Parameters of one estimator that differ from the shared ones, or come in addition.
OWN: dict[str, dict[str, tuple[Draw, tuple[Any, ...]]]] = {
    "ShareBoostClassifier": _SHAREBOOST | _CLASS_LOSS,
    "ShareBoostRegressor": _SHAREBOOST | _VALUE_LOSS,
    "ShareBoostClassifierCV": _SHAREBOOST | _CLASS_LOSS | _SEARCH,
    "ShareBoostRegressorCV": _SHAREBOOST | _VALUE_LOSS | _SEARCH,
    "OneVsRestGreedy": _GREEDY | {"loss": (draw_one_of(None, "logistic"), UNKNOWN)},
    "JointBoostClassifier": {
        "n_rounds": (draw_one_of(1, 5, 20), NOT_COUNTS),
        "n_bins": (draw_one_of(2, 16, 255, None), (0, 1, -1, 1.5, "a")),
        "max_features": (draw_one_of(0.3, 1.0), (0.0, -1.0, 1.5, "a", float("nan"))),
    },
    "MixedNormClassifier": _NORM | _NORM_CLASS_LOSS,
    "MixedNormClassifierCV": _NORM | _NORM_CLASS_LOSS | {"alphas": (ALPHAS, BAD_ALPHAS)},
    "MixedNormRegressor": _NORM | {"loss": (_NUMBERS, UNKNOWN)},
    "MixedNormRegressorCV": _NORM | {"loss": (_NUMBERS, UNKNOWN), "alphas": (ALPHAS, BAD_ALPHAS)},
    "MultiTaskLearner": _NORM | {"losses": (_NUMBERS, UNKNOWN)},
    "MultiTaskLearnerCV": _NORM | {"losses": (_NUMBERS, UNKNOWN), "alphas": (ALPHAS, BAD_ALPHAS)},
    "MirrorDescentClassifier": _ONLINE
    | {"loss": (draw_one_of("logistic", "hinge", "margin"), UNKNOWN)},
    "MirrorDescentRegressor": _ONLINE | {"loss": (_NUMBERS, UNKNOWN)},
    "OnlineMultiTaskLearner": _ONLINE | {"losses": (_NUMBERS, UNKNOWN)},
    "GroupPerceptron": _ONLINE | {"norm": (draw_one_of("l2,1", "l2,2", "l1,1"), ("nonsense", 3))},
    "TensorKernelClassifier": _TENSOR
    | {"loss": (draw_one_of("logistic", "hinge", "squared_hinge"), UNKNOWN)},
    "TensorKernelClassifierCV": _TENSOR
    | {"loss": (draw_one_of("logistic", "hinge", "squared_hinge"), UNKNOWN)},
    "TensorKernelRegressor": _TENSOR
    | {"loss": (draw_one_of(_NUMBERS, lambda rng: EpsilonInsensitive(0.5)), UNKNOWN)},
    "TensorKernelRegressorCV": _TENSOR | {"loss": (_NUMBERS, UNKNOWN)},
    "GreedyMKLClassifier": _GREEDY_MKL
    | {"loss": (draw_one_of("squared", "logistic", "margin"), UNKNOWN)},
    "GreedyMKLRegressor": _GREEDY_MKL,
    "GreedyMKLClassifierCV": _GREEDY_MKL
    | {
        "loss": (draw_one_of("squared", "logistic", "margin"), UNKNOWN),
        "alphas": (ALPHAS, BAD_ALPHAS),
    },
    "GreedyMKLRegressorCV": _GREEDY_MKL | {"alphas": (ALPHAS, BAD_ALPHAS)},
    "KernelMulticlassSVC": _MACHINE_LOSS
    | {
        "kernel": (draw_one_of("rbf", "laplacian", "poly", "linear"), ("nonsense", 3)),
        "gamma": (draw_one_of("scale", "auto", draw_between(1e-6, 1e3)), (-1.0, "a", float("nan"))),
        "degree": (draw_one_of(1, 2, 5), (-1, 1.5, "a")),
        "coef0": (draw_one_of(0.0, 1.0), ("a", float("nan"))),
        "memory": (draw_one_of(2**31, "1GB"), (-1, "much")),
    },
    "LinearMulticlassSVC": _MACHINE_LOSS
    | {"intercept_scaling": (draw_one_of(1.0, 0.1, 10.0), NOT_POSITIVE)},
    "MKLClassifier": _MACHINE_LOSS,
    "MKLClassifierCV": _MACHINE_LOSS,
    "ConvMKLClassifier": _MACHINE_LOSS,
    "ConvMKLClassifierCV": _MACHINE_LOSS,
    "SMSDMKLClassifier": {"q": (draw_one_of(None, "classes", 2.0, 5.0), (1.0, "a", float("nan")))},
    "SMSDMKLClassifierCV": {
        "q": (draw_one_of(None, "classes", 2.0, 5.0), (1.0, "a", float("nan")))
    },
    "UFOMKLClassifier": {"q": (draw_one_of(None, "classes", 2.0, 5.0), (1.0, "a", float("nan")))},
    "UFOMKLClassifierCV": {"q": (draw_one_of(None, "classes", 2.0, 5.0), (1.0, "a", float("nan")))},
}

#: Settings of short searches, so that one input does not take as long as a hundred others.
SHORT: dict[str, dict[str, Any]] = {
    "ShareBoostClassifierCV": {"n_features_to_select": 3, "cv": 2},
    "ShareBoostRegressorCV": {"n_features_to_select": 3, "cv": 2},
    "MixedNormClassifierCV": {"alphas": 4, "cv": 2},
    "MixedNormRegressorCV": {"alphas": 4, "cv": 2},
    "MultiTaskLearnerCV": {"alphas": 4, "cv": 2},
    "MKLClassifierCV": {"Cs": (1.0, 10.0), "ps": (1.2,), "cv": 2},
    "MKLRegressorCV": {"Cs": (1.0, 10.0), "ps": (1.2,), "cv": 2},
    "ConvMKLClassifierCV": {"Cs": (1.0,), "tails": (2,), "cv": 2},
    "SMSDMKLClassifierCV": {"Cs": (1.0,), "betas": (0.01,), "tails": (2,), "cv": 2},
    "UFOMKLClassifierCV": {"Cs": (1.0,), "betas": (0.001,), "cv": 2},
    "GreedyMKLClassifierCV": {"n_kernels": 3, "cv": 2},
    "GreedyMKLRegressorCV": {"n_kernels": 3, "cv": 2},
    "TensorKernelClassifierCV": {"gammas": 3, "cv": 2},
    "TensorKernelRegressorCV": {"gammas": 3, "cv": 2},
    "JointBoostClassifier": {"n_rounds": 10},
}


def find_values(estimator: str, parameter: str) -> tuple[Draw, tuple[Any, ...]] | None:
    """Return good and bad values of a parameter of an estimator, or None if it is not listed."""
    return OWN.get(estimator, {}).get(parameter) or SHARED.get(parameter)


def draw_parameters(
    rng: np.random.Generator, estimator: str, names: list[str]
) -> tuple[dict[str, Any], str]:
    """Return drawn parameters, and the name of one that must be refused ("" for none)."""
    found = dict(SHORT.get(estimator, {})) if rng.random() < 0.95 else {}
    for name in names:
        entry = find_values(estimator, name)
        if entry is not None and rng.random() < 0.3:
            found[name] = entry[0](rng)
    refused = ""
    if rng.random() < 0.12:
        choices = [name for name in names if find_values(estimator, name) is not None]
        refused = pick(rng, choices)
        bad = find_values(estimator, refused)
        assert bad is not None
        value = pick(rng, bad[1])
        found[refused] = value() if callable(value) and not isinstance(value, type) else value
    if "random_state" in names:
        found.setdefault("random_state", 0)
    return found, refused
