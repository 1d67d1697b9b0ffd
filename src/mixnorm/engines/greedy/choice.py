"""The choice of the next atoms: offers of the pool within the limits, ranked by a rule."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mixnorm._numbers import check_count
from mixnorm.engines.greedy.rules import NORMS, RULES, Choice, Gains, joint_gains
from mixnorm.engines.greedy.settings import DEFAULT_SETTINGS, GreedySettings

if TYPE_CHECKING:
    from mixnorm.engines._core.corrective import Support
    from mixnorm.pools import Curvature, PreparedPool

# Prices may exceed the budget by this share of it, as their sum is rounded.
_ROUNDING_OF_BUDGET = 1e-9


@dataclass(frozen=True)
class Limits:
    """Limits on the inputs and the price of all chosen atoms together; None means no limit.

    Parameters
    ----------
    inputs : int, optional
        Largest number of inputs.
    budget : float, optional
        Largest total price.
    pace : int
        Number of atoms to choose before one more input may come in, as long as others help.
    """

    inputs: int | None = None
    budget: float | None = None
    pace: int = 1

    @property
    def counts_inputs(self) -> bool:
        """Whether the inputs of an atom matter."""
        return self.inputs is not None or self.pace > 1

    def check(self, pool: PreparedPool) -> None:
        """Raise for limits out of range, and for a pool that lacks inputs or prices."""
        if self.inputs is not None:
            check_count("max_inputs", self.inputs)
        check_count("rounds_per_input", self.pace)
        if self.budget is not None and not 0.0 < self.budget < math.inf:
            raise ValueError(f"budget={self.budget!r} must be positive and finite.")
        if self.counts_inputs and not pool.tells_inputs:
            raise TypeError(
                f"{type(pool.given).__name__} cannot tell which columns an atom reads (it has no "
                "method inputs), as max_inputs and rounds_per_input need. Leave them at None and 1."
            )
        if self.budget is not None and not pool.priced:
            raise TypeError(
                f"{type(pool.given).__name__} has no prices (it has no method price), as a budget "
                "needs. Leave the budget at None, or give the pool prices, as in "
                "Columns(costs=...)."
            )

    def allowance(
        self, pool: PreparedPool, chosen: Collection[Hashable], *, paced: bool = False
    ) -> Allowance:
        """Return what may come in beside the ``chosen`` atoms: in all, or now if ``paced``."""
        used, inputs = None, self.inputs
        if self.counts_inputs:
            used = frozenset[int]().union(*(pool.inputs(atom) for atom in chosen))
        if used is not None and paced and self.pace > 1:
            # One input from the start, and one more after every ``pace`` atoms. Inputs that came in
            # together, with one atom, may already be more.
            by_now = max(1 + len(chosen) // self.pace, len(used))
            inputs = by_now if inputs is None else min(inputs, by_now)
        money = None
        if self.budget is not None:
            # Summed exactly: the order in which atoms came must not decide whether one more fits.
            spent = math.fsum(pool.price(atom) for atom in chosen)
            money = self.budget * (1.0 + _ROUNDING_OF_BUDGET) - spent
        return Allowance(pool, inputs, used, money)


@dataclass(frozen=True)
class Allowance:
    """What may still come in: atoms of at most ``inputs`` inputs with ``used``, for ``money``."""

    pool: PreparedPool
    inputs: int | None
    used: frozenset[int] | None
    money: float | None

    @property
    def new_inputs(self) -> float:
        """How many inputs may come in."""
        if self.inputs is None or self.used is None:
            return math.inf
        return self.inputs - len(self.used)

    def is_kept(self) -> bool:
        """Tell whether the chosen atoms keep the limits."""
        return self.new_inputs >= 0 and (self.money is None or self.money >= 0.0)

    def fits(self, atom: Any) -> bool:
        """Tell whether ``atom`` may come in."""
        if self.used is not None and len(self.pool.inputs(atom) - self.used) > self.new_inputs:
            return False
        return self.money is None or self.pool.price(atom) <= self.money

    def keywords(self, scan: Scan, *, known_inputs: bool) -> dict[str, Any]:
        """Return the keyword arguments that give a pool the limits, and the curvature."""
        keywords: dict[str, Any] = {}
        if scan.curvature is not None:
            keywords["curvature"] = scan.curvature
        if known_inputs:  # only atoms of the inputs in use, which every pool can tell
            keywords["inputs"] = self.used
        elif self.new_inputs < math.inf and self.pool.counts_inputs:
            keywords |= {"inputs": self.used, "new_inputs": int(self.new_inputs)}
        if self.money is not None:
            keywords["budget"] = self.money
        return keywords


def choose(
    support: Support,
    pool: PreparedPool,
    rule: str,
    exclude: frozenset[Hashable],
    limits: Limits,
    count: int = 1,
    settings: GreedySettings = DEFAULT_SETTINGS,
) -> list[Choice]:
    """Return the ``count`` best atoms by ``rule``, best first; fewer if fewer can help.

    A pool ranks all atoms by a cheap rule: norms of gradients, or :eq:`score-statistic`. The other
    rules compare its best ones more closely. Where the pool has prices, gains are divided by them.
    """
    cheap, refine = RULES[rule]
    by_gain = refine is not None and pool.takes_curvature
    if refine is None and (support.problem.kink > 0.0 or limits.counts_inputs):
        refine = NORMS[rule]  # the pool ranks without regard to these
    m = count if refine is None else max(settings.n_candidates, 2 * count)
    if by_gain and support.problem.loss.constant_curvature:
        cheap, by_gain = "l2", False  # this is the gain, for columns of one size
    scan = Scan(cheap, m, exclude, support.scan_curvature() if by_gain else None, settings)
    choices = _find_candidates(support, scan, limits.allowance(pool, support.blocks, paced=True))
    if not choices and limits.pace > 1:  # no atom of the inputs at hand helps
        choices = _find_candidates(support, scan, limits.allowance(pool, support.blocks))
    choices = _rank_choices(support, refine, choices)
    # A pool that ranks its atoms on a sample of rows may have better ones than it offers.
    while choices and (doubtful := _find_doubtful(support, pool, refine, choices)):
        pool.learn(support.centred_residual(), doubtful)
        allowed = limits.allowance(pool, support.blocks, paced=True)
        choices = _rank_choices(support, refine, _find_candidates(support, scan, allowed))
    if count > 1 and choices:
        # Later atoms come in without a scan of their own, and are compared by this promise then.
        return [
            replace(each, promise=_compute_joint_gain(support, each)) for each in choices[:count]
        ]
    return choices[:count]


def _rank_choices(support: Support, refine: Gains | None, choices: list[Choice]) -> list[Choice]:
    """Return choices by their gains per price, best first; as they are without a rule."""
    if refine is None or len(choices) < 2:
        return choices
    pairs = zip(refine(support, choices), choices, strict=True)
    worth = [gain / choice.price for gain, choice in pairs]
    order = sorted(range(len(choices)), key=worth.__getitem__, reverse=True)
    return [choices[index] for index in order]


def _find_doubtful(
    support: Support, pool: PreparedPool, refine: Gains | None, choices: list[Choice]
) -> list[Any]:
    """Return atoms that might be better than the best choice, for all that the pool knows."""
    best = choices[0]
    offers = pool.open_offers(best.atom)
    found = [atom for atom, _, better in offers if better or refine is not joint_gains]
    if refine is None or len(found) == len(offers):
        return found if refine is not None else [atom for atom, _, better in offers if better]
    others = [(atom, bound) for atom, bound, better in offers if not better]
    if len(others) > _MOST_BOUNDS:
        return [*found, *(atom for atom, _ in others)]
    (gain,) = refine(support, [best])
    gains = support.bound_gains([atom for atom, _ in others], [bound for _, bound in others])
    for (atom, _), most in zip(others, gains, strict=True):
        if most / pool.price(atom) >= gain / best.price:
            found.append(atom)
    return found


# Gains of at most so many atoms are bounded in a round; where more are open, all are computed.
_MOST_BOUNDS = 1024


def still_helps(
    support: Support, choice: Choice, settings: GreedySettings = DEFAULT_SETTINGS
) -> Choice | None:
    """Return a choice with its gradient after others came in; None if these made it useless.

    A choice is useless if a step on all columns would gain much less than its promise.
    """
    now = replace(choice, slope=support.slope_at_zero(choice.rows))
    if now.gradient <= support.noise:
        return None
    kept = settings.least_promise_kept * choice.promise
    return now if _compute_joint_gain(support, now) > kept else None


def _compute_joint_gain(support: Support, choice: Choice) -> float:
    """Return the gain of a choice when the weights of all columns follow."""
    return joint_gains(support, [choice])[0]


@dataclass(frozen=True)
class Scan:
    """A request to a pool: the ``m`` best atoms by a cheap rule, except those in ``exclude``."""

    rule: str
    m: int
    exclude: frozenset[Hashable]
    curvature: Curvature | None = None
    settings: GreedySettings = DEFAULT_SETTINGS


def _find_candidates(support: Support, scan: Scan, allowed: Allowance) -> list[Choice]:
    """Return about ``m`` atoms within the limits that can help, the best by the cheap rule."""
    misfits, choices = set[Hashable](), list[Choice]()
    # Without room for another input, the pool can be asked for atoms that fit from the start.
    full = allowed.new_inputs == 0
    keywords = allowed.keywords(scan, known_inputs=full)
    for found in _request_atoms(support, allowed.pool, scan, misfits, keywords):
        choices = _keep_helpful(support, found, allowed)
        misfits |= set(found) - {each.atom for each in choices}
        if choices:
            break
    if misfits and allowed.used and not full:
        # Atoms of the inputs in use fit, but the misfits may have taken their places.
        again = replace(scan, exclude=scan.exclude | {each.atom for each in choices})
        keywords = allowed.keywords(again, known_inputs=True)
        found = next(_request_atoms(support, allowed.pool, again, set(), keywords), [])
        choices += _keep_helpful(support, found, allowed)
    return choices


def _request_atoms(
    support: Support,
    pool: PreparedPool,
    scan: Scan,
    misfits: set[Hashable],
    keywords: dict[str, Any],
) -> Iterator[list[Any]]:
    """Yield the ``m`` best atoms of a pool, then more of them at each further step.

    Atoms that the caller has put in ``misfits`` are not offered again.
    """
    m = scan.m
    ask = pool.shortlist if m > 1 else pool.top
    residual = support.centred_residual()
    # No entry of a gradient is larger than its norm: a smaller norm moves no weight from a kink.
    least = max(support.noise, support.problem.kink)
    settings = scan.settings
    for _ in range(settings.max_requests):
        found = ask(residual, scan.rule, m, scan.exclude | misfits, **keywords)
        useful = [atom for atom, score in found if score > least]
        if not useful:
            return
        yield useful
        # No shortlist from here on: its atoms are chosen to differ, and might all be misfits again.
        ask, m = pool.top, min(max(4 * m, settings.n_candidates), settings.max_request)


def _keep_helpful(support: Support, atoms: list[Any], allowed: Allowance) -> list[Choice]:
    """Return the atoms within the limits, unless kinks hold their weights at zero."""
    pool, atoms = allowed.pool, [atom for atom in atoms if allowed.fits(atom)]
    if not atoms:
        return []
    choices = [
        Choice(atom, rows, slope, offset, pool.price(atom))
        for atom, (rows, slope, offset) in zip(atoms, support.offer(pool, atoms), strict=True)
    ]
    if support.problem.kink > 0.0:  # what is left of the gradients (:eq:`shrunk-gradient`)
        choices = [choice for choice in choices if choice.gradient > 0.0]
    return choices
