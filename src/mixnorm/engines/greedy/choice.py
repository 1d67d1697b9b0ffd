"""Which atoms come in next: what the pool offers, within the limits, ranked by a rule."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mixnorm._array import namespace
from mixnorm.engines.greedy.rules import NORMS, RULES, Choice, joint_gains

if TYPE_CHECKING:
    from mixnorm.engines._core.corrective import Support
    from mixnorm.pools import Curvature, PreparedPool

# Candidates of the cheap rule that a costlier rule looks at more closely.
_SHORTLIST = 8
# Where none of them will do, how often the pool is asked for more, and for how many at most.
_ASKS = 5
_MOST = 128
# A price may exceed what is left by this share of the budget, for the rounding of sums.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Limits:
    """What the chosen atoms may read and cost together; None stands for no limit.

    Parameters
    ----------
    inputs : int, optional
        Most columns of the data that all atoms read together.
    budget : float, optional
        Most that they cost together.
    pace : int
        Atoms chosen before one more column may come in, as far as any others help.
    """

    inputs: int | None = None
    budget: float | None = None
    pace: int = 1

    @property
    def counts_inputs(self) -> bool:
        """Whether it matters which columns an atom reads."""
        return self.inputs is not None or self.pace > 1

    def check(self, pool: PreparedPool) -> None:
        """Raise for limits out of range, and for a pool that cannot tell what they limit."""
        if self.inputs is not None and self.inputs < 1:
            raise ValueError(f"max_inputs={self.inputs!r} must be at least 1.")
        if self.pace < 1:
            raise ValueError(f"rounds_per_input={self.pace!r} must be at least 1.")
        if self.budget is not None and not 0.0 < self.budget < math.inf:
            raise ValueError(f"budget={self.budget!r} must be positive and finite.")
        if self.counts_inputs and not pool.tells_inputs:
            raise TypeError(
                f"{type(pool.given).__name__} cannot tell which columns an atom reads (it has no "
                "method inputs), so that max_inputs and rounds_per_input cannot be kept. Leave "
                "them at None and 1."
            )
        if self.budget is not None and not pool.priced:
            raise TypeError(
                f"{type(pool.given).__name__} has no prices (it has no method price), so that a "
                "budget cannot be kept. Leave the budget at None, or give the pool prices, as in "
                "Columns(costs=...)."
            )

    def left(self, pool: PreparedPool, chosen: Any, *, paced: bool = False) -> _Left:
        """Return what is left beside the ``chosen`` atoms, by now if ``paced``."""
        used, inputs = None, self.inputs
        if self.counts_inputs:
            used = frozenset[int]().union(*(pool.inputs(atom) for atom in chosen))
        if used is not None and paced and self.pace > 1:
            by_now = max(1 + len(chosen) // self.pace, len(used))
            inputs = by_now if inputs is None else min(inputs, by_now)
        money = None
        if self.budget is not None:
            spent = math.fsum(pool.price(atom) for atom in chosen)
            money = self.budget * (1.0 + _ROUNDING) - spent
        return _Left(pool, inputs, used, money)


@dataclass(frozen=True)
class _Left:
    """What may still come in: columns beside those in ``used``, and for how much."""

    pool: PreparedPool
    inputs: int | None
    used: frozenset[int] | None
    money: float | None

    @property
    def new_inputs(self) -> float:
        """How many columns may come in."""
        if self.inputs is None or self.used is None:
            return math.inf
        return self.inputs - len(self.used)

    def kept(self) -> bool:
        """Tell whether the chosen atoms keep the limits."""
        return self.new_inputs >= 0 and (self.money is None or self.money >= 0.0)

    def fits(self, atom: Any) -> bool:
        """Tell whether ``atom`` may come in."""
        if self.used is not None and len(self.pool.inputs(atom) - self.used) > self.new_inputs:
            return False
        return self.money is None or self.pool.price(atom) <= self.money

    def wishes(self, scan: Scan, *, known_inputs: bool) -> dict[str, Any]:
        """Return the keywords that tell a pool of the limits, and of the curvature."""
        wishes: dict[str, Any] = {}
        if scan.curvature is not None:
            wishes["curvature"] = scan.curvature
        if known_inputs:
            wishes["inputs"] = self.used
        elif self.new_inputs < math.inf and self.pool.counts_inputs:
            wishes |= {"inputs": self.used, "new_inputs": int(self.new_inputs)}
        if self.money is not None:
            wishes["budget"] = self.money
        return wishes


NO_LIMITS = Limits()


def choose(
    support: Support,
    pool: PreparedPool,
    rule: str,
    exclude: frozenset[Hashable],
    limits: Limits = NO_LIMITS,
) -> Choice | None:
    """Return the atom that ``rule`` prefers, or None if none within the limits can help."""
    return next(iter(choose_several(support, pool, rule, exclude, limits)), None)


def choose_several(
    support: Support,
    pool: PreparedPool,
    rule: str,
    exclude: frozenset[Hashable],
    limits: Limits = NO_LIMITS,
    count: int = 1,
) -> list[Choice]:
    """Return the ``count`` best different atoms by ``rule``, best first, fewer if fewer can help.

    Gains count per price, where the pool has prices.
    """
    cheap, refine = RULES[rule]
    by_gain = refine is not None and pool.takes_curvature
    if refine is None and (support.problem.kink > 0.0 or limits.counts_inputs):
        refine = NORMS[rule]  # the pool's ranking knows nothing of these
    m = count if refine is None else max(_SHORTLIST, 2 * count)
    if by_gain and support.problem.loss.constant_curvature:
        cheap, by_gain = "l2", False  # which is the gain, in columns of one size
    scan = Scan(cheap, m, exclude, support.scan_curvature() if by_gain else None)
    left = limits.left(pool, support.blocks, paced=True)
    choices = _candidates(support, pool, scan, left)
    if not choices and limits.pace > 1:  # the columns at hand are exhausted
        left = limits.left(pool, support.blocks)
        choices = _candidates(support, pool, scan, left)
    if refine is not None and len(choices) > 1:
        pairs = zip(refine(support, choices), choices, strict=True)
        worth = [gain / choice.price for gain, choice in pairs]
        order = sorted(range(len(choices)), key=worth.__getitem__, reverse=True)
        choices = [choices[index] for index in order]
    if count > 1 and choices:
        return [replace(each, promise=_promise(support, each)) for each in choices[:count]]
    return choices[:count]


def still_helps(support: Support, choice: Choice) -> Choice | None:
    """Return a choice as it stands after others came in; None if these have made it useless.

    That is so when a step on all columns would gain less than a tenth of what it promised.
    """
    now = replace(choice, slope=support.slope_at_zero(choice.rows))
    if now.gradient <= support.noise:
        return None
    return now if _promise(support, now) > 0.1 * choice.promise else None


def _promise(support: Support, choice: Choice) -> float:
    """Return what a choice would gain if all columns followed."""
    return joint_gains(support, [choice])[0]


@dataclass(frozen=True)
class Scan:
    """What a pool is asked for: the ``m`` best atoms by a cheap rule, but for those excluded."""

    rule: str
    m: int
    exclude: frozenset[Hashable]
    curvature: Curvature | None = None


def _candidates(support: Support, pool: PreparedPool, scan: Scan, left: _Left) -> list[Choice]:
    """Return about ``m`` atoms within the limits that can help; the best by the cheap rule."""
    misfits, choices = set[Hashable](), list[Choice]()
    full = left.new_inputs == 0
    wishes = left.wishes(scan, known_inputs=full)
    for found in _offers(support, pool, scan, misfits, wishes):
        choices = _helpful(support, pool, [atom for atom in found if left.fits(atom)])
        misfits |= set(found) - {each.atom for each in choices}
        if choices:
            break
    if misfits and left.used and not full:
        # Atoms that read only what is in use fit, but others may have taken their places.
        again = replace(scan, exclude=scan.exclude | {each.atom for each in choices})
        wishes = left.wishes(again, known_inputs=True)
        found = next(_offers(support, pool, again, set(), wishes), [])
        choices += _helpful(support, pool, [atom for atom in found if left.fits(atom)])
    return choices


def _offers(
    support: Support, pool: PreparedPool, scan: Scan, misfits: set[Hashable], wishes: dict[str, Any]
) -> Iterator[list[Any]]:
    """Ask the pool for its ``m`` best atoms, and for more of them as long as one goes on asking.

    Those in ``misfits``, which the caller fills, are not offered again.
    """
    m = scan.m
    ask = pool.shortlist if m > 1 else pool.top
    residual = support.centred_residual()
    # No entry of a gradient is larger than its norm: what is below a kink cannot move.
    least = max(support.noise, support.problem.kink)
    for _ in range(_ASKS):
        found = ask(residual, scan.rule, m, scan.exclude | misfits, **wishes)
        useful = [atom for atom, score in found if score > least]
        if not useful:
            return
        yield useful
        ask, m = pool.top, min(max(4 * m, _SHORTLIST), _MOST)


def _helpful(support: Support, pool: PreparedPool, atoms: list[Any]) -> list[Choice]:
    """Compute the gradients of all atoms in one product; drop those that kinks hold at zero."""
    if not atoms:
        return []
    xp = namespace(support.residual)
    parts = [pool.columns(atom) for atom in atoms]
    rows, offsets = support.centred(xp.concat(parts))
    slopes, start, choices = support.slope_at_zero(rows), 0, []
    for atom, part in zip(atoms, parts, strict=True):
        at = slice(start, start + part.shape[0])
        choices.append(Choice(atom, rows[at, :], slopes[at, :], offsets[at], pool.price(atom)))
        start = at.stop
    if support.problem.kink > 0.0:
        choices = [choice for choice in choices if choice.gradient > 0.0]
    return choices
