"""Settings of the multikernel engine: the numbers that shape its algorithms, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MultikernelSettings:
    """Numbers that decide how fast the engine reaches a gap, but not which gap it reaches.

    Every solution is judged by its duality gap, so that other values change the time of a fit and
    never its guarantee. The fields follow the modules: the alternation (``engine.py``), coordinate
    ascent (``ascent.py``), Newton steps (``newton.py``), the interior-point method
    (``interior.py``) and the machine on factors (``machine.py``). Shares and ratios have no unit.

    Parameters
    ----------
    machine_tol_share : float
        A machine is solved to this share of the tolerance. The rest is left for the weights.
    machine_gap_share : float
        While the gap is far above the tolerance, a machine is solved to this share of it: more
        would be lost with the next weights, less would hide how good the weights are.
    gain_share : float
        Without offsets, the gap is also at most this share of the gain over scores of zero. It
        matters where rows count so little that scores of zero are within the tolerance.
    least_start_weight : float
        Weights to start from are raised to this share of the largest, since a weight of zero stays
        zero (:eq:`touching-weights`).
    least_weight_ratio : float
        Smallest factor of a weight from one iteration to the next, if the reduced problem sets the
        weights. A few dual variables may not need a kernel that the optimum needs.
    step_factor : float
        Length of the step to the touching weights, in logarithms of the weights. The best weights
        lie beyond the touching ones. The length becomes 1 once the objective has risen.
    n_kept_duals : int
        Earlier dual variables that the reduced problem combines with the present ones
        (:eq:`reduced-problem`). Each costs a product with every kernel once.
    reduced_rounds, fine_reduced_rounds : int
        Rounds of the reduced problem: enough for gaps of 1 %, and for tolerances below
        ``fine_tol``.
    fine_tol : float
        Relative tolerance below which ``fine_reduced_rounds`` apply.
    prune_levels : tuple of float
        Shares of the largest weight. At the end, kernels below the first of them that leaves the
        gap within the tolerance are dropped.
    least_subset_rows : int
        Fewest rows of a problem to learn the start from. On fewer the weights say too little.
    subset_ratio : int
        A start is learned on one row of so many, which costs the square of this number less.
    subset_iterations : int
        Most machines on a part of the rows.
    subset_tol_factor : float
        On a part of the rows the tolerance is larger by this factor, if weights may be zero. These
        weights are the slow part, and change again on all rows.
    max_failures : int
        The search ends after so many machines in a row that missed their gap, unless the total gap
        falls. Then rounding is all that is left.
    failure_ratio : float
        The total gap falls if it is below this share of the one before.
    passes : int
        Passes over the active rows before they are chosen again.
    choices : int
        Choices of active rows before a Newton step is considered.
    ascent_rounds : int
        Most rounds of passes and a Newton step in one ascent.
    max_systems : int
        Most systems of equations that the Newton steps of one ascent solve. A run that needs more
        is so badly conditioned that it is left to the interior-point method.
    idle_rounds : int
        An ascent ends after so many rounds without a fall of the gap.
    idle_ratio : float
        The gap falls if it is below this share of the lowest one.
    many_active : float
        If more than this share of the rows is active, passes are over all rows, because a copy of
        the part of the matrix no longer pays.
    goal_share, row_gap_share : float
        Passes over some rows stop at this share of the goal, or at this share of their own gap,
        whichever is larger.
    active_share : float
        A row is active if its part of the gap exceeds this multiple of the mean part
        (:eq:`row-gap`).
    seconds_per_update : float
        Seconds that one update of a score takes. Only the ratio to ``seconds_per_product`` and to
        the times of Newton steps matters.
    least_progress : float
        Least fall of the logarithm of the gap that a forecast assumes for the second half of the
        updates. Gaps do not fall evenly, and one idle half must not predict infinity.
    updates_before_forecast : int
        Updates of each row before a forecast is made.
    max_directions : int
        Most unknowns of a Newton step: its matrix then takes 72 MB (:eq:`newton-direction`).
    newton_steps : int
        Most Newton steps for one proximal step (:eq:`proximal-machine`).
    newton_residual : float
        The Newton steps end when the energy of the residual is below this share of the squared move
        over ``sigma``. The ascent along the line corrects the rest.
    reach_factor : float
        Factor by which the size ``sigma`` of proximal steps grows after a success and falls after a
        failure.
    max_patience : float
        Largest factor by which failed Newton steps raise the estimate of their time.
    interior_steps : int
        Most steps of the interior-point method; most runs take about 25.
    interior_idle_steps : int
        The method ends after so many steps without a lower gap: rounding is all that is left.
    boundary_share : float
        Share of the way to the boundary that a step goes at most. The usual value, close to one.
    max_interior_unknowns : int
        Most unknowns of the interior-point method, whose matrix is dense.
    interior_usual_steps : int
        Steps of the method that an estimate of its time assumes.
    interior_overhead : float
        Seconds of one of its steps beside products.
    seconds_per_product : float
        Seconds of one multiplication in its matrix products.
    interior_goal_share : float
        Share of the wanted gap that the interior-point method must reach if only its dual variables
        are kept, because making them feasible costs some of it.
    feature_rounds : int
        Most rounds of the machine on factors.
    small_weight : float
        Kernels below this share of the largest weight are left out of a round, because they hardly
        change the scores.
    slow_fall : float
        Kernels of small weight come back if the gap does not fall below this share of the one
        before.
    sweeps : int
        Sweeps over the active rows before sums are computed again.
    few_changes : float
        Sweeps end early if less than this share of the active rows changes.
    wide_factors : float
        The kernel matrix of the active rows is computed if the columns of all scores are this many
        times the active rows: a row of the matrix is then shorter than the rows of the factors.
    max_block_rows : int
        Most rows of that matrix, which then takes 256 MB in single precision.
    """

    machine_tol_share: float = 0.5
    machine_gap_share: float = 0.1
    gain_share: float = 0.5
    least_start_weight: float = 1e-6
    least_weight_ratio: float = 1e-3
    step_factor: float = 1.6
    n_kept_duals: int = 6
    reduced_rounds: int = 50
    fine_reduced_rounds: int = 1000
    fine_tol: float = 1e-3
    prune_levels: tuple[float, ...] = (1e-2, 1e-3, 1e-5)
    least_subset_rows: int = 150
    subset_ratio: int = 3
    subset_iterations: int = 30
    subset_tol_factor: float = 3.0
    max_failures: int = 3
    failure_ratio: float = 0.7

    passes: int = 20
    choices: int = 3
    ascent_rounds: int = 500
    max_systems: int = 500
    idle_rounds: int = 60
    idle_ratio: float = 0.9
    many_active: float = 0.6
    goal_share: float = 0.5
    row_gap_share: float = 0.1
    active_share: float = 0.3
    seconds_per_update: float = 5e-9
    least_progress: float = 0.3
    updates_before_forecast: int = 1

    max_directions: int = 3000
    newton_steps: int = 30
    newton_residual: float = 0.05
    reach_factor: float = 6.0
    max_patience: float = 8.0

    interior_steps: int = 150
    interior_idle_steps: int = 15
    boundary_share: float = 0.99
    max_interior_unknowns: int = 800
    interior_usual_steps: int = 25
    interior_overhead: float = 5e-4
    seconds_per_product: float = 5e-10
    interior_goal_share: float = 0.1

    feature_rounds: int = 5000
    small_weight: float = 1e-3
    slow_fall: float = 0.9
    sweeps: int = 20
    few_changes: float = 0.1
    wide_factors: float = 4.0
    max_block_rows: int = 8000


#: The settings of a fit that names none.
DEFAULT_SETTINGS = MultikernelSettings()
