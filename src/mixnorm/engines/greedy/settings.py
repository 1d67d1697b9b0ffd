"""Settings of the greedy engine: the numbers that shape its algorithms, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GreedySettings:
    """Numbers that decide how closely candidates are compared and how exactly rounds are solved.

    What users change more often is in :class:`~mixnorm.GreedyOptions`. Shares, ratios and lengths
    have no unit.

    Parameters
    ----------
    n_candidates : int
        Candidates of the cheap rule that a more exact rule compares. Their gains take a few
        products with the chosen columns, much less than a scan of the pool.
    max_requests : int
        Scans of a pool in one round, if none of the atoms that it offers can come in.
    max_request : int
        Most atoms that such a scan asks for; each asks for four times as many as the one before.
    least_promise_kept : float
        An atom chosen along with others is left out if it would gain less than this share of what
        it promised, because the others explain it by now.
    last_round : (float, float)
        A round ends when the gain left is at most a multiple of ``tol`` times the objective, or
        times a share of the loss of the empty model once the objective is below that share
        (separable data). These are the multiple and the share, for the last round.
    earlier_rounds : (float, float)
        The same for earlier rounds, which only have to show which atom comes next.
    budget_columns : int
        Columns to reserve memory for at first, if a budget and not their number ends a run.
    alpha_ratio : float
        A penalty within this factor of the best one by the evidence is left unchanged
        (:eq:`evidence-alpha`): the model hardly depends on less, and a change costs a fit.
    alpha_changes : int
        Most changes of the penalty in one round. It changes little from round to round.
    first_step : float
        Length of the first step of tuning (:eq:`patch-tuning`). A full step would be too long, as
        the step of each atom is found as if the others did not move.
    step_lengths : int
        Lengths to try in a sweep of tuning, each half the one before.
    step_growth : float
        Growth of the length after a sweep that has lowered the objective.
    least_fall_share : float
        A step of tuning must lower the loss by this share of the fall that its slope promises.
    least_sweep_fall : float
        A sweep of tuning that lowers the objective by a smaller share is the last.
    """

    n_candidates: int = 8
    max_requests: int = 5
    max_request: int = 128
    least_promise_kept: float = 0.1

    last_round: tuple[float, float] = (1.0, 0.02)
    earlier_rounds: tuple[float, float] = (20.0, 0.1)
    budget_columns: int = 64

    alpha_ratio: float = 1.5
    alpha_changes: int = 3

    first_step: float = 0.3
    step_lengths: int = 6
    step_growth: float = 1.5
    least_fall_share: float = 0.1
    least_sweep_fall: float = 1e-3


#: The settings of a fit that names none.
DEFAULT_SETTINGS = GreedySettings()
