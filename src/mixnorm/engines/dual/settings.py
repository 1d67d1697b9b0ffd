"""The numbers that shape the solvers of the dual, in one object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DualSettings:
    """Numbers that decide how the solvers of the dual take their steps, and when they give up.

    Every solution carries its own duality gap, so that no setting can make a result wrong. Work is
    counted in *contractions*: a point costs one, whatever is then computed from it. Constants that
    only guard against rounding are not here but beside the code that they protect.

    Attributes
    ----------
    most_decades : int
        Most values of ``gamma`` on the way to a large one, a factor of ten apart. At a normalised
        ``gamma`` of 1e12 residuals are far below rounding, and nothing is left to fit.
    newton_contractions : int
        Contractions of Newton's method before the interior-point method is tried, for duals with
        bounds. Newton's method usually needs fewer than half as many; where many entries switch
        between bounds, more of its steps gain almost nothing.
    damped_steps : int
        Damped Newton steps that are tried before a proximal gradient step is taken instead. The
        damping grows thirtyfold with each, so that the last ones are gradient steps in effect.
    damping_growth, damping_decay : float
        Factors of the damping after a step that gains nothing, and after one that does at the first
        attempt. It grows faster than it falls, because a failed step costs a whole contraction.
    shortest_proximal_step : float
        The shortest proximal gradient step, as a share of the first one. If even this one does not
        lower the value, rounding is in the way.
    delta, theta : float
        Constants of the line search of first-order methods: the share of the bound that a step must
        keep, and the factor from each length to the next. One half each, as in the paper.
    most_lengths : int
        Lengths that one such line search tries at most. They reach below any step that changes a
        number in double precision.
    armijo : float
        Share of what its slope promises that a Newton step for squared losses must gain. A small
        one: near the solution whole steps are right, and a strict rule would cut them.
    most_search_points : int
        Points that the line search for squared losses tries at most.
    shortest_cut, longest_cut : float
        Range of the factor by which that line search cuts a step. The minimum of the parabola
        through both slopes is taken within it, as it may be far off for higher powers.
    share_of_way : float
        Share of the way to the nearest bound that an interior-point step may go. On a bound the
        barrier would be infinite.
    margin_between_bounds, margin_of_size : float
        The start of the interior-point method is inside the bounds by the first share of their
        distance, and at most by the second share of the mean size of the dual variables. A start
        near a bound makes short steps; one far inside forgets where Newton's method ended.
    centring : float
        Share of the mean product that a step aims at where Mehrotra's step failed. Such a step goes
        towards the middle of the bounds, and surely descends.
    shortest_centred_step : float
        Length below which such a step is given up.
    share_of_rest : float
        Share of the gap outside the products that a step aims at. The products must not vanish
        before the rest of the gap does, or steps along the bounds would become short.
    """

    most_decades: int = 12
    newton_contractions: int = 25
    # Newton's method for any loss.
    damped_steps: int = 12
    damping_growth: float = 30.0
    damping_decay: float = 0.1
    shortest_proximal_step: float = 0.5**60
    # First-order methods.
    delta: float = 0.5
    theta: float = 0.5
    most_lengths: int = 100
    # Newton's method for squared losses.
    armijo: float = 1e-4
    most_search_points: int = 40
    shortest_cut: float = 0.1
    longest_cut: float = 0.6
    # The interior-point method.
    share_of_way: float = 0.995
    margin_between_bounds: float = 0.05
    margin_of_size: float = 0.1
    centring: float = 0.2
    shortest_centred_step: float = 0.5**12
    share_of_rest: float = 0.1


#: The settings of every fit that does not name others.
DEFAULT_SETTINGS = DualSettings()
