"""Kernels by low-rank factors: from landmarks (Nyström) or from random features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mixnorm._threads import one_thread
from mixnorm.kernels.functions.evaluate import Evaluator, Side
from mixnorm.kernels.functions.kernels import GaussianKernel, LaplacianKernel
from mixnorm.kernels.functions.metrics import Points
from mixnorm.kernels.grams.base import Grams, Index, Positions, as_positions, list_positions

# Directions whose eigenvalue is below this part of the largest are rounding, and are dropped.
# A feature is divided by the root of its eigenvalue. Below this part, the division would magnify
# rounding errors more than 1e5 times.
_LEAST_EIGENVALUE = 1e-10


class FactorGrams(Grams):
    r"""Gram matrices with known factors, :math:`K_m \approx \Phi_m \Phi_m^\top`.

    Parameters
    ----------
    columns : array of shape (n_samples, sum of ranks)
        The factors side by side.
    ranks : list of int
        How many columns belong to each kernel.
    """

    def __init__(self, columns: np.ndarray, ranks: Sequence[int]) -> None:
        n = len(columns)
        super().__init__(len(ranks), (n, n), columns.dtype)
        self._columns = columns
        self._ranks = list(ranks)
        #: The factors, views of the columns.
        self.factors: list[np.ndarray] = split_columns(columns, ranks)

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns of all factors side by side, and the kernel of each column."""
        return self._columns, np.repeat(np.arange(self.n_kernels), self._ranks)

    def _detail(self) -> str:
        return f"rank={max(self._ranks)}, "

    def _add_sum(
        self, total: np.ndarray, scales: np.ndarray, rows: Positions, columns: Positions
    ) -> None:
        # The sum is as large as a Gram matrix, so this is for few rows.
        for factor, scale in zip(self.factors, scales, strict=True):
            if scale:
                total += (scale * factor[rows]) @ factor[columns].T

    def _energies(self, table: np.ndarray) -> np.ndarray:
        # The energy tr A' Phi Phi' A is the square of the length of Phi' A: one product serves all
        # kernels, and no rounding makes it negative. The many squares are added in double
        # precision.
        products = self._columns.T @ table.astype(self.dtype)
        _, kernel_of = self.columns()
        sums = np.sum(products.astype(np.float64) ** 2, axis=1)
        return np.bincount(kernel_of, weights=sums, minlength=self.n_kernels)

    def _products(self, table: np.ndarray, which: list[int]) -> np.ndarray:
        factors = [self.factors[m] for m in which]
        return np.stack([factor @ (factor.T @ table) for factor in factors])

    def diagonals(self) -> np.ndarray:
        """Return the diagonals, of shape ``(n_kernels, n_samples)``, in float64."""
        return np.stack([np.einsum("ij,ij->i", phi, phi, dtype=np.float64) for phi in self.factors])

    def take(self, rows: Index) -> FactorGrams:
        """Return a copy of the factors on some of the rows."""
        index = list_positions(as_positions(rows, self.n_samples, "rows"))
        return FactorGrams(self._columns[index], self._ranks)

    def rescale(self, scales: np.ndarray, evaluator: Evaluator) -> None:
        """Multiply the factors in place by the roots of the scales."""
        # The factors are views of the columns, so that scaling them in place scales both.
        for factor, root in zip(self.factors, np.sqrt(scales), strict=True):
            factor *= root

    def _tail_sums(self, tails: list[int], weight: np.ndarray | None) -> np.ndarray:
        n = max(1, self.n_samples)
        roots = None if weight is None else np.sqrt(weight / np.mean(weight))[:, None]
        found = np.zeros((len(tails), self.n_kernels))
        for m, factor in enumerate(self.factors):
            wide = factor.astype(np.float64)
            wide = wide if roots is None else wide * roots
            with one_thread():  # apart from zeros, the eigenvalues of the large matrix
                values = np.linalg.eigvalsh(wide.T @ wide)[::-1]
            for place, tail in enumerate(tails):
                found[place, m] = max(0.0, float(np.sum(values[tail:]))) / n
        return found


def split_columns(columns: np.ndarray, ranks: Sequence[int]) -> list[np.ndarray]:
    """Return the columns of each kernel, as views."""
    if not ranks:
        return []
    return np.split(columns, np.cumsum(ranks)[:-1], axis=1)


# --- landmarks


def landmark_maps(evaluator: Evaluator, landmarks: Side) -> list[np.ndarray]:
    """Return for each kernel the map from its values at the landmarks to features.

    The map is the inverse root of the landmarks' Gram matrix, without directions of rounding
    (:eq:`landmark-factor`).
    """
    maps: list[np.ndarray] = []
    for m in range(len(evaluator.kernels)):
        # Blocks come in the order of the rows; together they are the whole matrix of the landmarks.
        square = np.concatenate(
            [block for _, _, block in evaluator.blocks(landmarks, landmarks, [m])]
        )
        with one_thread():
            values, vectors = np.linalg.eigh(0.5 * (square + square.T))
        kept = values > _LEAST_EIGENVALUE * max(values[-1], 0.0)
        kept[-1] = True  # a kernel that is zero everywhere has one feature, which is zero
        root = np.sqrt(np.maximum(values[kept], np.finfo(np.float64).tiny))
        maps.append(vectors[:, kept] / root if values[-1] > 0.0 else np.zeros((len(values), 1)))
    return maps


# --- random features


def random_maps(
    evaluator: Evaluator, widths: dict[int, int], rank: int, generator: np.random.Generator
) -> tuple[list[np.ndarray], list[int]]:
    """Return arrays of frequencies (:eq:`random-features`), and the number of each kernel's array.

    Kernels of one metric on one group of columns share frequencies, up to their width, so that the
    inner products with a row are computed once.
    """
    maps: list[np.ndarray] = []
    places: dict[tuple[int, str | None], int] = {}
    map_of = []
    for m, kernel in enumerate(evaluator.kernels):
        if not isinstance(kernel, (GaussianKernel, LaplacianKernel)):
            raise ValueError(
                f"factors='random' needs Gaussian or Laplacian kernels, but kernel "
                f"{evaluator.names[m]!r} is a {type(kernel).__name__}; use factors='nystrom'."
            )
        group = evaluator.group_of[m]
        key = (group, kernel.metric)
        if key not in places:
            shape = (widths[group], rank // 2)
            gaussian = isinstance(kernel, GaussianKernel)
            draw = generator.standard_normal if gaussian else generator.standard_cauchy
            places[key] = len(maps)
            maps.append(draw(shape))
        map_of.append(places[key])
    return maps, map_of


def random_features(
    evaluator: Evaluator,
    points: Mapping[int, Points],
    maps: Sequence[np.ndarray],
    map_of: Sequence[int],
    places: Mapping[int, np.ndarray],
    roots: np.ndarray,
) -> None:
    """Write the features of rows for some kernels into ``places``: cosines, and then sines.

    The features are those of :eq:`random-features`, times the root of the kernel's scale.
    """
    phases: dict[int, np.ndarray] = {}
    for m, place in places.items():
        kernel, base = evaluator.kernels[m], map_of[m]
        if base not in phases:
            phases[base] = np.asarray(points[evaluator.group_of[m]].centred @ maps[base])
        # The Fourier transform of a Gaussian kernel is normal with standard deviation 1 /
        # sqrt(tau), that of a Laplacian kernel in each column is a Cauchy density of scale 1 / tau.
        # One draw of unit width therefore serves kernels of all widths.
        tau = float(kernel.tau)  # type: ignore[attr-defined]  # random_maps checked
        unit = np.sqrt(tau) if isinstance(kernel, GaussianKernel) else tau
        angles = phases[base] / unit
        half = angles.shape[1]
        place[:, :half], place[:, half:] = np.cos(angles), np.sin(angles)
        place *= place.dtype.type(half**-0.5 * roots[m])
