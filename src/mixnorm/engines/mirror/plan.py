"""The plan of online learners, their losses, and the account that they keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from mixnorm.engines.mirror import layout
from mixnorm.losses import Loss, compiled
from mixnorm.norms import Norm

#: Rules for step sizes: a given number, one that falls with the square root of the rounds, or one
#: that depends on the gradients seen, of all features or of each. Predictions of perceptrons do not
#: depend on step sizes, and they have none.
RULES = {
    "none": layout.NONE,
    "fixed": layout.FIXED,
    "anytime": layout.ANYTIME,
    "adaptive": layout.ADAPTIVE,
    "feature": layout.NONE,
}

#: Origins, from which inputs are measured.
ORIGINS = {"zero": layout.ZERO, "means": layout.MEANS, "marked": layout.MARKED}

#: The loss of perceptrons: one for a mistake.
PERCEPTRON = "perceptron"

#: Samples: an array of shape ``(n_samples, n_features)``, or a CSR matrix.
Rows: TypeAlias = np.ndarray | sparse.csr_array | sparse.csr_matrix

# Places for the constants of each loss in the compiled loops, which take one table for all losses.
_CONSTANTS_OF_A_LOSS = 4
# The squares of the norms of smaller rows are near the smallest float and lose their digits.
_LEAST_ROW_NORM = 1e-140


class NotFiniteError(ValueError):
    """A sample holds NaN or infinity; ``losses`` and ``wrong`` are of the samples before it."""

    def __init__(
        self, done: int, losses: np.ndarray, wrong: np.ndarray, order: np.ndarray | None = None
    ) -> None:
        self.losses, self.wrong = losses[:done], wrong[:done]
        row = done if order is None else order[done]
        super().__init__(
            f"Row {row} of X contains NaN or infinity; the {done} rows before it were learned "
            "from. Fill such values in (SimpleImputer), or leave the row out."
        )


class InterruptedLearning(KeyboardInterrupt):
    """An interrupt between samples; ``losses`` and ``wrong`` are of the samples before it."""

    def __init__(self, done: int, losses: np.ndarray, wrong: np.ndarray) -> None:
        self.losses, self.wrong = losses[:done], wrong[:done]
        super().__init__(f"interrupted after {done} rows, which were learned from")


@dataclass(frozen=True)
class Plan:
    """What a learner does, apart from what it has learned.

    Parameters
    ----------
    norm : Norm
        The norm, which must be strongly convex or have a strongly convex surrogate.
    losses : sequence
        One joint loss (or :data:`PERCEPTRON`) for labels, or a scalar loss for each output.
    rule : {"none", "fixed", "anytime", "adaptive", "feature"}
        The rule for step sizes.
    rate : float
        For ``"fixed"`` the step size; for ``"anytime"`` the first one; for ``"adaptive"`` the norm
        of the weights to compete with; for ``"feature"`` about the largest change of a score in the
        first step.
    radius : float
        Largest norm of the weights.
    scaled : bool
        Whether inputs are measured in units: the largest distance from the origin seen so far.
    intercept : bool
        Whether there is a column of ones.
    averaged : bool
        Whether the running average of the weights is kept.
    quiet : float
        The learner learns only from samples whose derivative in a score exceeds this.
    block : int
        Number of samples predicted with the same weights, for norms with a costly mirror map.
    origin : {"zero", "means", "marked"}
        The origin of scaled inputs: zero, the running mean of each column, or the running mean of
        marked columns only. A sample without an entry in a marked column does not know its value.
    """

    norm: Norm
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
        """Whether samples have a class label."""
        return is_joint(self.losses[0])

    def smooth(self, n_features: int, n_outputs: int) -> Any:
        """Return the strongly convex norm to work with, for weights of the given shape."""
        # A norm that is strongly convex itself has no surrogate. The surrogate's exponent depends
        # on the number of weights (see "Rounds" in the derivation).
        surrogate = getattr(self.norm, "surrogate", None)
        norm = self.norm if surrogate is None else surrogate((n_features, n_outputs))
        if getattr(norm, "mirror", None) is None:
            raise TypeError(
                f"{self.norm!r} has no mirror map and no strongly convex surrogate, which "
                "online learning needs; the norms 'l1,1', 'l2,1', 'l2,2' and 'trace' have one."
            )
        return norm

    def check(self, n_outputs: int) -> None:
        """Raise ValueError unless a learner can work with this plan, which may be from a file."""
        if self.rule not in RULES or self.origin not in ORIGINS:
            raise ValueError(f"the plan must have a rule of {[*RULES]}, an origin of {[*ORIGINS]}")
        # A radius may be infinite, which means no ball. Comparisons with NaN are false.
        positive = 0.0 < self.rate < math.inf and self.radius > 0.0
        if not positive or not 0.0 <= self.quiet < 1.0 or self.block < 1:
            raise ValueError("the numbers of the plan are out of range")
        if not isinstance(self.norm, Norm):
            raise ValueError(f"{self.norm!r} is not a norm")
        if not all(loss == PERCEPTRON or isinstance(loss, Loss) for loss in self.losses):
            raise ValueError("the plan must have losses")
        joint = [is_joint(loss) for loss in self.losses]
        scalar = not any(joint) and len(joint) in (1, n_outputs)
        if joint != [True] and not scalar:
            raise ValueError("the plan must have one joint loss, or a scalar loss for each output")


class OnlineLearner:
    """The base of online learners, with the numbers that they keep and the bounds on them."""

    #: The names of the arrays of the state.
    stored: tuple[str, ...]
    plan: Plan
    n_features: int
    n_outputs: int
    numbers: np.ndarray
    norm: Any

    @property
    def rounds(self) -> int:
        """Samples seen."""
        return int(self.numbers[layout.ROUNDS])

    @property
    def mistakes(self) -> int:
        """Samples (or tasks of samples) whose class was predicted wrongly."""
        return int(self.numbers[layout.MISTAKES])

    @property
    def updates(self) -> int:
        """Samples that changed the weights."""
        return int(self.numbers[layout.UPDATES])

    @property
    def loss(self) -> float:
        """The weighted sum of the losses of all samples, each before it was learned from."""
        return float(self.numbers[layout.LOSS])

    def learn(
        self,
        X: Rows,
        labels: np.ndarray,
        targets: np.ndarray,
        importance: np.ndarray,
        order: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from samples one after the other; return each one's loss and mistakes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        labels : array of int of shape (n_samples,), or of shape (0,)
            The class of each sample, or for scalar losses the output that it has a target for. If
            empty, every sample has targets for all outputs.
        targets : array of shape (n_samples, n_outputs) or (n_samples, 1)
            The targets of scalar losses; NaN where a target is missing.
        importance : array of shape (n_samples,)
            How many times each sample counts.
        order : array of int of shape (n_samples,), optional
            The order in which the learner meets the samples.

        Returns
        -------
        losses, wrong : arrays of shape (n_samples,)
            Weighted losses, and mistakes, in the order in which samples were met.
        """
        samples = (labels, targets, importance)
        if order is not None:
            samples = tuple(each[order] if len(each) else each for each in samples)
        # Filled row by row: if one is not finite, those before it are still reported, as they
        # have been learned from.
        losses, wrong = np.zeros(X.shape[0]), np.zeros(X.shape[0], dtype=np.int64)
        plain = (make_plain(each, each.dtype) for each in samples)
        before = self.rounds
        try:
            done = self._learn(X, order, *plain, losses, wrong)
        except KeyboardInterrupt:
            raise InterruptedLearning(self.rounds - before, losses, wrong) from None
        if done < len(losses):
            raise NotFiniteError(done, losses, wrong, order)
        return losses, wrong

    def _learn(self, X: Rows, order: np.ndarray | None, *samples: np.ndarray) -> int:
        """Learn from samples; return the number of those before one that is not finite.

        ``samples`` are labels, targets and importance, in order, and the arrays of losses and
        mistakes to fill.
        """
        raise NotImplementedError

    def check_numbers(self) -> None:
        """Raise ValueError if the data were too large or too small for floating-point numbers."""
        if not np.all(np.isfinite(self.numbers)):
            raise ValueError(
                "The weights have overflowed: inputs, targets or sample weights are too large (or "
                "too small) for these steps. Set scale=True, lower eta0, or scale the data "
                "(MaxAbsScaler), and start anew."
            )
        if 0.0 < self.numbers[layout.LARGEST_SAMPLE] < _LEAST_ROW_NORM:
            raise ValueError(
                "The rows are so small that their squares are lost. Set scale=True, or scale the "
                "data (MaxAbsScaler), and start anew."
            )

    def _sums(self) -> np.ndarray:
        """Return minus the sum of gradients, ``(n_columns, n_outputs)``, the intercept first."""
        raise NotImplementedError

    def _comparator(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of shape ``(n_columns, n_outputs)``, with a zero for the intercept."""
        weights = np.asarray(weights, dtype=np.float64).reshape(self.n_outputs, -1)
        missing = self.n_features + 1 - weights.shape[1]
        return np.concatenate([np.zeros((self.n_outputs, missing)), weights], axis=1).T

    def regret(self, weights: np.ndarray) -> float:
        """Return an upper bound on how much more was lost than with fixed weights.

        It is the sum of ``<v_t, w_t - u>`` over the rounds, the middle of :eq:`regret`.
        """
        self._check_rule()
        # The sums are minus the gradients', so that their product with the weights is added.
        given = self._comparator(weights)
        return float(self.numbers[layout.LINEAR]) + float(np.sum(self._sums() * given))

    def regret_bound(self, weights: np.ndarray) -> float:
        """Return the bound that the theory gives for :meth:`regret`, with the steps taken.

        It is ``f(u) / rate_T + sum_t rate_t |v_t|^2 / (2 beta)`` with ``f`` half the squared norm,
        the right side of :eq:`regret`, and holds for weights in the ball.
        """
        self._check_rule()
        rate, steps = self._last_step()
        if not rate > 0.0:  # no sample was learned from so far
            return 0.0
        size = float(self.norm.value(self._comparator(weights)))
        return 0.5 * size * size / rate + steps

    def _last_step(self) -> tuple[float, float]:
        """Return the last step size, and the sum of ``rate_t |v_t|^2 / (2 beta)``."""
        return float(self.numbers[layout.LAST_RATE]), float(self.numbers[layout.STEPS])

    def mistake_bound(self, weights: np.ndarray) -> float:
        """Return the largest number of mistakes that a perceptron can have made (:eq:`mistakes`).

        With ``a = |W| * max |X| / sqrt(beta)`` for the weights to compare with, it is
        ``L + a sqrt(L) + a^2``, where ``L`` is what they lose on the mistakes (at most their hinge
        loss).
        """
        if self.plan.losses[0] != PERCEPTRON:
            raise TypeError("Only perceptrons have a mistake bound; call regret_bound instead.")
        self._check_raw()
        # Mistakes on rows of weight zero are not learned from and do not count here.
        given, made = self._comparator(weights), float(self.numbers[layout.UPDATES])
        lost = max(0.0, made - float(np.sum(self._sums() * given)))
        size = float(self.norm.value(given)) * float(self.numbers[layout.LARGEST_GRADIENT])
        factor = size / math.sqrt(self.norm.strong_convexity())
        return lost + factor * math.sqrt(lost) + factor * factor

    def _check_averaged(self) -> None:
        if not self.plan.averaged:
            raise ValueError(
                "average=True was set after learning began, and no average was kept; set "
                "average=False, or start a new model."
            )

    def _check_rule(self) -> None:
        if self.plan.rule in ("none", "feature"):
            raise TypeError(
                f"Steps by the rule {self.plan.rule!r} have no regret bound here; choose 'fixed', "
                "'anytime' or 'adaptive'."
            )
        self._check_raw()

    def _check_raw(self) -> None:
        if self.plan.scaled:
            raise TypeError(
                "There is no bound for rows measured in running units; set scale=False, and scale "
                "the rows beforehand if need be."
            )


def make_plain(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the array, or a copy if the loop would have to be compiled again for it."""
    # numba compiles for each memory layout, and for arrays that cannot be written to; "E" also
    # turns subclasses into plain arrays.
    return np.require(array, dtype, requirements=["C", "W", "E"])


def is_joint(loss: Loss | str) -> bool:
    """Tell whether a loss, or the perceptron's, is of all scores of a sample and its label."""
    return isinstance(loss, str) or bool(loss.is_classifier)


def rule_error(norm: Norm) -> ValueError:
    """Return the error for steps by feature with a norm other than ``"l2,2"``."""
    return ValueError(
        f"learning_rate='feature' goes with the norm 'l2,2' only, got {norm!r}; "
        "choose 'adaptive' for this norm."
    )


def row_code(loss: Loss | str) -> int | None:
    """Return the number of a loss in the compiled loops; None for a loss that is not in them."""
    return compiled.PERCEPTRON if isinstance(loss, str) else getattr(loss, "row_code", None)


def are_compiled(losses: Sequence[Any]) -> bool:
    """Tell whether the compiled loops know all of these losses."""
    return all(row_code(loss) is not None for loss in losses)


def row_constants(loss: Loss | str) -> np.ndarray:
    """Return the constants of a loss that the compiled loops need."""
    found, own = np.zeros(_CONSTANTS_OF_A_LOSS), getattr(loss, "row_constants", ())
    found[: len(own)] = own
    return found


def row_loss(loss: Loss | str) -> Callable[[np.ndarray, Any], tuple[float, np.ndarray]]:
    """Return the loss of one sample and its derivatives, as a function of scores and target.

    The function is compiled if possible. For a scalar loss it takes a single score.
    """
    code = row_code(loss)
    if code is None and not isinstance(loss, str):
        return partial(_general_loss, loss)
    constants = row_constants(loss)
    if is_joint(loss):

        def label_loss(scores: np.ndarray, label: int) -> tuple[float, np.ndarray]:
            residual = np.empty(len(scores))
            return compiled.label_loss(code, constants, scores, label, residual), residual

        return label_loss
    return lambda scores, target: compiled.number_loss(code, constants, scores[0], target)


def _general_loss(loss: Loss, scores: np.ndarray, target: Any) -> tuple[float, np.ndarray]:
    # As a batch of one row of weight one.
    scores = scores[None, :]
    encoded = loss.encode(np.asarray([target]), scores.shape[1], scores)
    value, residual = loss.value_and_residual(scores, encoded, np.ones(1))
    return float(value), residual[0]
