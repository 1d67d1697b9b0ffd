"""Representations of a tensor kernel on training rows: features, a tensor, or parts of either."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mixnorm.engines import dual
from mixnorm.kernels import TensorKernel
from mixnorm.kernels.tensor import (
    FeatureExpansion,
    PairExpansion,
    PairFactor,
    TensorExpansion,
    draw_features,
    feature_sums,
    multisets,
    pair_factor,
    tensor_gram,
    weights_of_sums,
)

__all__ = [
    "REPRESENTATIONS",
    "Representation",
    "RepresentationSettings",
    "choose_representation",
    "represent",
]

#: Most arguments of a kernel that is stored as a tensor: beyond, even few rows have too many.
MOST_ARGUMENTS = 8
#: The names of representations.
REPRESENTATIONS = ("features", "tensor", "sampled", "low-rank")


@dataclass(frozen=True, kw_only=True)
class RepresentationSettings:
    """Numbers by which a representation is chosen, and the sizes of those that are approximate.

    Parameters
    ----------
    feature_bytes, tensor_bytes : float
        Most bytes of features, and of a tensor, that ``"auto"`` may choose: 2 GiB and 0.5 GiB. A
        larger tensor takes seconds to make, and longer to read than drawn features.
    n_monomials : int
        Most monomials to draw, if ``n_components`` does not say.
    n_pair_columns : int
        Most columns of a factor of pairs, if ``n_components`` does not say. They are symmetric
        matrices with a row for each training row, hence far fewer.
    products_per_second : float
        Products of features per second, measured on one thread. Only the ratios of the speeds
        matter.
    cache_speed, memory_speed : float
        Bytes per second of a tensor that is in the cache, or in memory; measured on one thread.
    cache_bytes : float
        Bytes of a cache.
    """

    feature_bytes: float = 2**31
    tensor_bytes: float = 2**29
    n_monomials: int = 2000
    n_pair_columns: int = 300
    products_per_second: float = 25e9
    cache_speed: float = 35e9
    memory_speed: float = 21e9
    cache_bytes: float = 2e7


#: The settings of a fit that names none.
DEFAULT_SETTINGS = RepresentationSettings()


@dataclass(frozen=True)
class Representation:
    """A tensor kernel on training rows, for the solver and for prediction.

    Attributes
    ----------
    name : str
        One of ``REPRESENTATIONS``.
    kernel : TensorKernel
        The kernel, as its ``fitted`` returns it.
    q : float
        The exponent.
    unit : float
        The divisor of columns, which avoids overflows.
    columns : array of shape (n_rows, n_columns)
        Columns of the training rows, divided by ``unit``.
    contraction : Contraction
        The input of the solver.
    error : float
        The largest error of an entry of the kernel, relative to the largest entry.
    mass : float
        The mean share of the kernel of a row with itself that is kept.
    exponents : array of shape (n_features, n_columns), optional
        The exponents of the monomials that were drawn.
    factor : PairFactor, optional
        The factor of the kernel of pairs.
    """

    name: str
    kernel: TensorKernel
    q: float
    unit: float
    columns: np.ndarray
    contraction: dual.Contraction
    error: float = 0.0
    mass: float = 1.0
    exponents: np.ndarray | None = None
    factor: PairFactor | None = None

    @property
    def log_scale(self) -> float:
        """The logarithm of the divisor of the kernel's features."""
        degree = self.kernel.homogeneous()
        return 0.0 if degree is None else degree * math.log(self.unit)

    def expansion(self, alpha: np.ndarray) -> FeatureExpansion | PairExpansion | TensorExpansion:
        """Return the functions of dual variables ``(n_rows, n_outputs)`` (:eq:`tensor-score`).

        With a tensor, they are weights of features, if these are fewer than the products of pairs
        of rows.
        """
        parts = (self.kernel, self.q, self.unit)
        contraction = self.contraction
        if isinstance(contraction, dual.FeatureContraction):
            return FeatureExpansion(*parts, contraction.weights(alpha), self.exponents)
        if self.factor is not None:
            return self._expand_pairs(alpha, self.factor)
        n, width = self.columns.shape
        # From dual variables every score takes a sum over tuples of training rows; from weights,
        # one product for each feature (:eq:`tensor-kkt`). The weights are the better choice while
        # they are the smaller model.
        if self.kernel.finite and self.kernel.count(width) <= n * n * width:
            sums = feature_sums(self.kernel, self.columns, alpha, self.q)
            return FeatureExpansion(*parts, weights_of_sums(sums, self.q))
        return TensorExpansion(*parts, self.columns, alpha)

    def _expand_pairs(self, alpha: np.ndarray, factor: PairFactor) -> PairExpansion:
        # Functions of pairs (:eq:`tensor-pairs`): a pair of different rows stands for both orders.
        left, right = multisets(len(alpha), 2)
        beta = np.where(left == right, 1.0, 2.0)[:, None] * alpha[left] * alpha[right]
        # The factored kernel is a function of the pivot pairs alone, where its factor is
        # triangular.
        triangle = factor.factor[factor.pivots]
        coef = np.zeros((0, alpha.shape[1]))
        if len(triangle):
            coef = linalg.solve_triangular(triangle, factor.factor.T @ beta, trans=1, lower=True)
        pairs = np.stack([left[factor.pivots], right[factor.pivots]])
        return PairExpansion(self.kernel, self.unit, self.columns, alpha, pairs, coef)


def represent(
    kernel: TensorKernel,
    X: np.ndarray,
    q: float,
    *,
    name: str = "auto",
    n_components: int | None = None,
    random_state: Any = None,
    settings: RepresentationSettings = DEFAULT_SETTINGS,
) -> Representation:
    """Represent a kernel on training rows.

    Parameters
    ----------
    kernel : TensorKernel
        The kernel.
    X : array of shape (n_rows, n_columns)
        The rows.
    q : float
        The exponent: an even number from 4 up, or with features any above 2.
    name : {"auto", "features", "tensor", "sampled", "low-rank"}
        ``"auto"`` takes the fastest one that fits in memory.
    n_components : int, optional
        Most monomials to draw, or columns of a factor of pairs; 2000 or 300 by default.
    random_state : int, RandomState or None
        The seed for drawing monomials.
    settings : RepresentationSettings
        Sizes, and the speeds by which ``"auto"`` chooses.
    """
    kernel = kernel.resolve(X)
    columns = kernel.columns(X)
    # A homogeneous kernel of degree 4 multiplies 16 entries for q = 4. Divided by the largest entry
    # no product overflows; the unit comes back as a logarithm (:eq:`tensor-scale`).
    unit = 1.0
    if kernel.homogeneous() is not None:
        unit = float(np.max(np.abs(columns), initial=0.0)) or 1.0
        columns = columns / unit
    if name == "auto":
        name = choose_representation(kernel, columns, q, settings)
    rank = n_components or settings.n_pair_columns
    _check_representation(name, kernel, columns, q, rank)
    parts = (name, kernel, float(q), unit, columns)
    if name == "features":
        features = _check_finite(kernel.features_of_columns(columns, q), kernel)
        return Representation(*parts, dual.FeatureContraction(features, q))
    if name == "tensor":
        half = int(q) // 2
        gram = tensor_gram(kernel, columns, half)
        return Representation(*parts, dual.TensorContraction(gram, len(columns), half))
    if name == "sampled":
        rng = _make_generator(random_state)
        made = draw_features(kernel, columns, q, n_components or settings.n_monomials, rng)
        # The shares of the kernel that the monomials keep bound its error (:eq:`tensor-hoelder`).
        error, mass = float(np.max(1.0 - made.mass)), float(np.mean(made.mass))
        drawn = dual.FeatureContraction(_check_finite(made.features, kernel), q)
        return Representation(*parts, drawn, error, mass, made.exponents)
    # A form with this factor in place of the tensor, not the norm of any features
    # (:eq:`tensor-low-rank`).
    pairs = pair_factor(kernel, columns, rank)
    contraction = dual.LowRankContraction(_unpack_factor(pairs.factor, len(columns)))
    return Representation(*parts, contraction, pairs.error, pairs.mass, factor=pairs)


def choose_representation(
    kernel: TensorKernel,
    columns: np.ndarray,
    q: float,
    settings: RepresentationSettings = DEFAULT_SETTINGS,
) -> str:
    """Return the name of the fastest representation that fits in memory.

    Features are always chosen if they are fewer than rows: dual variables then grow with ``gamma``,
    and sums over a tensor would lose all digits.
    """
    n = len(columns)
    count = kernel.count_on(columns)
    fits = 8.0 * n * count <= settings.feature_bytes
    half = int(q) // 2
    if _is_even(q) and q <= MOST_ARGUMENTS and kernel.has_products:
        # Bytes that are read: the matrix over multisets of rows is symmetric (:eq:`tensor-pairs`).
        tensor = 4.0 * math.comb(n + half - 1, half) ** 2
        cached = tensor < settings.cache_bytes
        reading = tensor / (settings.cache_speed if cached else settings.memory_speed)
        if fits and (count < n or n * n * count / settings.products_per_second <= reading):
            return "features"
        if 2.0 * tensor <= settings.tensor_bytes:
            return "tensor"
    if fits:
        return "features"
    if can_draw(kernel):
        return "sampled"
    if q == 4 and kernel.has_products:
        return "low-rank"
    raise ValueError(
        f"{kernel!r} on {n} rows has too many features to list, and with q={q:g} they must be "
        "drawn, which the kernel cannot do. Give it log_rho(degrees) and draw_degrees(totals, "
        "rng), take fewer rows, or set q=4."
    )


def can_draw(kernel: TensorKernel) -> bool:
    """Tell whether a kernel has methods that draw its features."""
    if not kernel.has_products:
        return False
    try:  # the base class raises; a kernel of the user's own may have both methods or none
        kernel.log_rho(np.zeros(1))
        kernel.draw_degrees(np.ones(1), np.random.default_rng(0))
    except NotImplementedError:
        return False
    return True


def _is_even(q: float) -> bool:
    return float(q).is_integer() and int(q) % 2 == 0


def _check_representation(
    name: str, kernel: TensorKernel, columns: np.ndarray, q: float, rank: int
) -> None:
    """Raise if a representation is unknown, impossible, or does not fit in memory."""
    if name not in REPRESENTATIONS:
        known = ["auto", *REPRESENTATIONS]
        raise ValueError(f"representation={name!r} is not known; choose one of {known}.")
    what = f"representation={name!r}"
    if name in ("tensor", "low-rank"):
        if not kernel.has_products:
            raise ValueError(
                f"{what} needs a kernel of products, and {kernel!r} has features only. Choose "
                "representation='features'."
            )
        if not _is_even(q) or q > MOST_ARGUMENTS or (name == "low-rank" and q != 4):
            wanted = "q=4" if name == "low-rank" else f"an even q up to {MOST_ARGUMENTS}"
            raise ValueError(
                f"{what} needs {wanted}, got q={q!r}. Choose representation='features', which "
                "takes any q above 2."
            )
    if name == "features" and not kernel.finite:
        raise ValueError(
            f"{what} needs finitely many features, and {kernel!r} has infinitely many. Choose "
            "'sampled', which draws the largest ones, or 'tensor'."
        )
    if name == "sampled" and not can_draw(kernel):
        raise ValueError(
            f"{what} needs a kernel that draws features, which {kernel!r} cannot do; give it "
            "log_rho(degrees) and draw_degrees(totals, rng)."
        )
    n, half = len(columns), int(q) // 2
    size = 0.0
    if name == "features":
        size = 8.0 * n * kernel.count_on(columns)
    elif name == "tensor":
        size = 8.0 * math.comb(n + half - 1, half) ** 2
    elif name == "low-rank":
        size = 12.0 * n * n * min(rank, n * (n + 1) // 2)
    memory = _find_available_memory()
    if size > memory:
        raise ValueError(
            f"{what} needs {size / 2**30:.3g} GiB for {n} rows of X, but only {memory / 2**30:.3g} "
            "GiB are available. Choose representation='sampled', which needs little memory, give "
            "fewer rows, or lower n_components."
        )


def _find_available_memory() -> float:
    """Return the bytes that this process may use; infinity if the system does not report them."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        machine = float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ImportError, OSError, ValueError):
        return math.inf
    # The other half of a limit is for memory in use, and for copies.
    return machine if limit == resource.RLIM_INFINITY else min(machine, 0.5 * limit)


def _check_finite(features: np.ndarray, kernel: TensorKernel) -> np.ndarray:
    if not np.all(np.isfinite(features)):
        raise ValueError(
            f"{kernel!r} has features that are out of the range of floats on these rows; divide "
            "the columns of X by their size, or set standardize=True."
        )
    return features


def _make_generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):  # which moves on, as in scikit-learn
        random_state = int(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _unpack_factor(factor: np.ndarray, n: int) -> np.ndarray:
    """Return columns of a factor of pairs as symmetric matrices."""
    left, right = multisets(n, 2)
    made = np.empty((factor.shape[1], n, n))
    made[:, left, right] = factor.T
    made[:, right, left] = factor.T
    return made
