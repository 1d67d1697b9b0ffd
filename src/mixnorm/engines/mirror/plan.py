"""What online learners do, their losses, and the account that they keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mixnorm.engines.mirror import layout
from mixnorm.losses import Loss, compiled
from mixnorm.norms import Norm

#: Step sizes: given, falling with the square root of the rounds, by the gradients seen, or by those
#: of each feature; perceptrons need none, as their predictions do not depend on it.
RULES = {
    "none": layout.NONE,
    "fixed": layout.FIXED,
    "anytime": layout.ANYTIME,
    "adaptive": layout.ADAPTIVE,
    "feature": layout.NONE,
}

#: What inputs are measured from.
ORIGINS = {"zero": layout.ZERO, "means": layout.MEANS, "marked": layout.MARKED}

#: The loss of perceptrons: one for a mistake.
PERCEPTRON = "perceptron"

Array = np.ndarray

_CONSTANTS = 4  # of a loss in the compiled loops
_SMALLEST = 1e-140  # norm of rows, above which squares keep their digits


class NotFiniteError(ValueError):
    """A sample holds NaN or infinity; those before it were learned from, and lost so much."""

    def __init__(
        self,
        done: int,
        losses: Array | None = None,
        wrong: Array | None = None,
        order: Array | None = None,
    ) -> None:
        self.losses = np.empty(0) if losses is None else losses[:done]
        self.wrong = np.empty(0, dtype=np.int64) if wrong is None else wrong[:done]
        row = done if order is None else order[done]
        super().__init__(
            f"Row {row} of X contains NaN or infinity; the {done} rows before it were learned "
            "from. Fill such values in (SimpleImputer), or leave the row out."
        )


@dataclass(frozen=True)
class Plan:
    """What a learner does, as opposed to what it has learned.

    Parameters
    ----------
    norm : Norm
        The norm, which must be strongly convex or have a strongly convex surrogate.
    losses : sequence
        One joint loss (or :data:`PERCEPTRON`) for labels, or a scalar loss for each output.
    rule : {"none", "fixed", "anytime", "adaptive", "feature"}
        How steps are chosen.
    rate : float
        The step size; the first of falling ones; for ``"adaptive"`` the radius of what is to be
        competed with; for ``"feature"`` about the most that a score moves in the first step.
    radius : float
        Largest norm of the weights.
    scaled : bool
        Measure inputs in units: the largest distance from the origin seen in their column.
    intercept : bool
        Have a column of ones.
    averaged : bool
        Keep the running average of the weights.
    quiet : float
        Learn only from samples whose derivative in a score exceeds this.
    block : int
        Samples that share their weights, for norms whose mirror map is dear.
    origin : {"zero", "means", "marked"}
        What scaled inputs are measured from: zero, the running mean of their column, or that of
        the columns marked so; a sample without such a column does not know its value.
    """

    norm: Any
    losses: Sequence[Any]
    rule: str = "adaptive"
    rate: float = 1.0
    radius: float = math.inf
    scaled: bool = False
    intercept: bool = False
    averaged: bool = False
    quiet: float = 0.0
    block: int = 1
    origin: str = "zero"

    @property
    def joint(self) -> bool:
        """Whether samples bring a class label."""
        loss = self.losses[0]
        return loss == PERCEPTRON or bool(loss.is_classifier)

    def smooth(self, n_features: int, n_outputs: int) -> Any:
        """Return the strongly convex norm to work with, for weights of a shape."""
        surrogate = getattr(self.norm, "surrogate", None)  # an ability that norms may lack
        norm = self.norm if surrogate is None else surrogate((n_features, n_outputs))
        if getattr(norm, "mirror", None) is None:
            raise TypeError(
                f"{self.norm!r} has no mirror map and no strongly convex surrogate, which "
                "online learning needs; the norms 'l1,1', 'l2,1', 'l2,2' and 'trace' have one."
            )
        return norm

    def check(self, n_outputs: int) -> None:
        """Raise for whatever a learner could not work with; the parts may be a stranger's."""
        if self.rule not in RULES or self.origin not in ORIGINS:
            raise ValueError(f"the plan must have a rule of {[*RULES]}, an origin of {[*ORIGINS]}")
        positive = 0.0 < self.rate < math.inf and self.radius > 0.0
        if not positive or not 0.0 <= self.quiet < 1.0 or self.block < 1:
            raise ValueError("the numbers of the plan are out of range")
        if not isinstance(self.norm, Norm):
            raise ValueError(f"{self.norm!r} is no norm")
        if not all(loss == PERCEPTRON or isinstance(loss, Loss) for loss in self.losses):
            raise ValueError("the plan must have losses")
        joint = [loss == PERCEPTRON or loss.is_classifier for loss in self.losses]
        scalar = not any(joint) and len(joint) in (1, n_outputs)
        if joint != [True] and not scalar:
            raise ValueError("the plan must have one joint loss, or a scalar loss for each output")


class Account:
    """The numbers that a learner keeps about its rounds."""

    #: The arrays that make the state, with the plan and the sizes.
    stored: tuple[str, ...]
    plan: Plan
    n_features: int
    n_outputs: int
    numbers: Array
    norm: Any

    @property
    def rounds(self) -> int:
        """Samples seen."""
        return int(self.numbers[layout.ROUNDS])

    @property
    def mistakes(self) -> int:
        """Samples (or tasks of samples) whose class was predicted wrong."""
        return int(self.numbers[layout.MISTAKES])

    @property
    def updates(self) -> int:
        """Samples that the weights were changed by."""
        return int(self.numbers[layout.UPDATES])

    @property
    def loss(self) -> float:
        """The weighted losses of all samples, each before it was learned from."""
        return float(self.numbers[layout.LOSS])

    def check_numbers(self) -> None:
        """Raise a clear error for data of a size that numbers cannot hold."""
        if not np.all(np.isfinite(self.numbers)):
            raise ValueError(
                "The weights have overflowed: inputs, targets or sample weights are too large (or "
                "too small) for these steps. Set scale=True, lower eta0, or scale the data "
                "(MaxAbsScaler), and start anew."
            )
        if 0.0 < self.numbers[layout.LARGEST_SAMPLE] < _SMALLEST:
            raise ValueError(
                "The rows are so small that their squares are lost. Set scale=True, or scale the "
                "data (MaxAbsScaler), and start anew."
            )

    def _sums(self) -> Array:
        """Return minus the sum of gradients, ``(n_columns, n_outputs)``, intercept first."""
        raise NotImplementedError

    def _comparator(self, weights: Array) -> Array:
        """Return weights as ``(n_columns, n_outputs)``, with a zero for the intercept."""
        weights = np.asarray(weights, dtype=np.float64).reshape(self.n_outputs, -1)
        missing = self.n_features + 1 - weights.shape[1]
        return np.concatenate([np.zeros((self.n_outputs, missing)), weights], axis=1).T

    def regret(self, weights: Array) -> float:
        """Return how much more was lost than by fixed weights, at most.

        That is the sum of ``<v_t, w_t - u>`` over the rounds, which is not less than the
        difference of the losses.
        """
        self._check_rule()
        given = self._comparator(weights)
        return float(self.numbers[layout.LINEAR]) + float(np.sum(self._sums() * given))

    def regret_bound(self, weights: Array) -> float:
        """Return what the theory promises of :meth:`regret`, from the steps that were taken.

        That is ``f(u) / rate_T + sum_t rate_t |v_t|^2 / (2 beta)`` with ``f`` half the squared
        norm, and holds for weights in the ball.
        """
        self._check_rule()
        rate, steps = self._last_step()
        if not rate > 0.0:  # nothing was learned from so far
            return 0.0
        size = float(self.norm.value(self._comparator(weights)))
        return 0.5 * size * size / rate + steps

    def _last_step(self) -> tuple[float, float]:
        """Return the last step size, and the sum of ``rate_t |v_t|^2 / (2 beta)``."""
        return float(self.numbers[layout.LAST_RATE]), float(self.numbers[layout.STEPS])

    def mistake_bound(self, weights: Array) -> float:
        """Return how many mistakes a perceptron can have made, given weights to compare with.

        With ``a = |W| * max |X| / sqrt(beta)`` that is ``L + a sqrt(L) + a^2``, where ``L`` is what
        the weights lost on the mistakes (at most their hinge loss there).
        """
        if self.plan.losses[0] != PERCEPTRON:
            raise TypeError("Only perceptrons have a mistake bound; ask for the regret bound.")
        self._check_raw()
        given, made = self._comparator(weights), float(self.numbers[layout.UPDATES])
        lost = max(0.0, made - float(np.sum(self._sums() * given)))
        size = float(self.norm.value(given)) * float(self.numbers[layout.LARGEST_GRADIENT])
        factor = size / math.sqrt(self.norm.strong_convexity())
        return lost + factor * math.sqrt(lost) + factor * factor

    def _check_averaged(self) -> None:
        if not self.plan.averaged:
            raise ValueError(
                "average=True was set after learning began, and no average was kept; set it back, "
                "or learn anew."
            )

    def _check_rule(self) -> None:
        if self.plan.rule in ("none", "feature"):
            raise TypeError(
                f"Steps by the rule {self.plan.rule!r} have no regret bound here; 'fixed', "
                "'anytime' and 'adaptive' ones have."
            )
        self._check_raw()

    def _check_raw(self) -> None:
        if self.plan.scaled:
            raise TypeError(
                "The theory promises nothing of rows measured in running units; set scale=False "
                "for a bound, and scale the rows beforehand if need be."
            )


def row_code(loss: Any) -> int | None:
    """Return the number of a loss in the compiled loops; None for a loss that is not in them."""
    return compiled.PERCEPTRON if loss == PERCEPTRON else getattr(loss, "row_code", None)


def are_compiled(losses: Sequence[Any]) -> bool:
    """Tell whether the compiled loops know all of some losses."""
    return all(row_code(loss) is not None for loss in losses)


def row_constants(loss: Any) -> Array:
    """Return what the compiled loops need to know of a loss."""
    found = np.zeros(_CONSTANTS)
    if loss != PERCEPTRON:
        found[: len(loss.row_constants)] = loss.row_constants
    return found


def row_loss(loss: Any) -> Callable[[Array, Any], tuple[float, Array]]:
    """Return a function of a sample's scores and its label or target.

    It returns the loss and the derivatives, compiled where it can be. For a scalar loss the scores
    are one.
    """
    code = row_code(loss)
    if code is None:
        return partial(_general_loss, loss)
    constants = row_constants(loss)
    if loss == PERCEPTRON or loss.is_classifier:

        def label_loss(scores: Array, label: Any) -> tuple[float, Array]:
            residual = np.empty(len(scores))
            return compiled.label_loss(code, constants, scores, label, residual), residual

        return label_loss
    return lambda scores, target: compiled.number_loss(code, constants, scores[0], target)


def _general_loss(loss: Any, scores: Array, target: Any) -> tuple[float, Array]:
    scores = scores[None, :]
    encoded = loss.encode(np.asarray([target]), scores.shape[1], scores)
    value, residual = loss.value_and_residual(scores, encoded, np.ones(1))
    return float(value), residual[0]
