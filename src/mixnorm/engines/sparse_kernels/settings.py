"""Settings of the engine of sparse kernel learning, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SparseKernelSettings:
    """Numbers that decide how fast a refit converges, and how its result is stored.

    Parameters
    ----------
    newton_steps : int
        Most steps of Newton's method for one unknown: the norm of a block
        (:eq:`block-minimiser`), or the length of a step (:eq:`line-step`). Both converge in about
        ten; the bound only ends runs that rounding keeps from converging.
    shorter_steps : int
        Lengths of a joint Newton step that are tried, each a quarter of the one before. Blocks make
        progress anyway, so that a search to the end is not worth its evaluations.
    patient_rounds : int
        Rounds of blocks after which a joint Newton step that fails is replaced by one without the
        curvature of the norms. It is shorter, but surely goes down.
    gap_rounds : int
        Rounds of blocks after which the fall of the gap is judged.
    gap_ratio : float
        The refit gives up if the lowest gap is above this share of the lowest one ``gap_rounds``
        before: with a tiny penalty it would hardly move.
    exact_distance : float
        Distance, relative to the model, below which the residual is taken as the exact solution, so
        that all kernels share one table (:eq:`gomp-table`, :eq:`lasso-table`). It is about the
        rounding of the scores in single precision.
    """

    newton_steps: int = 50
    shorter_steps: int = 5
    patient_rounds: int = 20
    gap_rounds: int = 100
    gap_ratio: float = 0.5
    exact_distance: float = 1e-7


#: The settings of a fit that names none.
DEFAULT_SETTINGS = SparseKernelSettings()
