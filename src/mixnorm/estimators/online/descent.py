"""The parameters of estimators by mirror descent, and their plan."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any

from mixnorm.engines import mirror
from mixnorm.estimators._common.parameters import (
    Count,
    Number,
    OneOf,
    Seed,
    Switch,
    Whole,
    maybe,
)
from mixnorm.estimators.online.base import OnlineEstimator
from mixnorm.norms import Norm, as_norm

LearningRate = Annotated[str, OneOf(("auto", "fixed", "anytime", "adaptive", "feature"))]
Size = Annotated[float | None, maybe(Number(above=0))]
HashedColumns = Annotated[int | None, maybe(Whole(least=1))]


@dataclass(eq=False, repr=False)
class MirrorDescent(OnlineEstimator):
    """The parameters of estimators by mirror descent."""

    # Whether learning_rate="auto" may choose steps by feature, and their first rate. It is one for
    # numbers, because steps are in units of the targets.
    _by_feature = True
    _first_rate = 1.0

    _: KW_ONLY
    radius: Size = None
    learning_rate: LearningRate = "auto"
    eta0: Size = None
    fit_intercept: Switch = True
    scale: Switch = True
    average: Switch = False
    shuffle: Switch = True
    random_state: Seed = None
    block_size: Count = 1
    hash_features: HashedColumns = None

    def _check_together(self) -> None:
        norm = as_norm(self.norm)
        # Steps by feature are those of AdaGrad in the Euclidean norm (:eq:`feature-steps`); other
        # norms have no such rule.
        if self.learning_rate == "feature" and not is_euclidean(norm):  # also with few columns
            raise mirror.rule_error(norm)

    def _choose_steps(self, norm: Norm, losses: list[Any]) -> tuple[str, float]:
        """Return the rule and the rate of steps, with defaults where the user gave none."""
        rule = self.learning_rate
        if rule == "auto":
            euclidean = is_euclidean(norm) and mirror.are_compiled(losses)
            # A ball needs the norm of all weights after each step, which steps by feature do not
            # keep.
            by_feature = self._by_feature and euclidean and self.radius is None
            rule = "feature" if by_feature else "adaptive"
        if self.eta0 is not None:
            return rule, float(self.eta0)
        # :eq:`adaptive-rate` has R, the size of the weights to compete with; inside a ball this is
        # its radius.
        if rule == "adaptive" and self.radius is not None:
            return rule, float(self.radius)
        return rule, {"feature": self._first_rate, "adaptive": 10.0}.get(rule, 1.0)

    def _plan(self, losses: list[Any], origin: str) -> mirror.Plan:
        plan = super()._plan(losses, origin)
        rule, rate = self._choose_steps(plan.norm, losses)
        return replace(
            plan,
            rule=rule,
            rate=rate,
            radius=math.inf if self.radius is None else float(self.radius),
            quiet=float(getattr(self, "conservative", 0.0)),
            block=int(self.block_size),
        )


def is_euclidean(norm: Norm) -> bool:
    """Tell whether a norm is the Euclidean norm of all entries."""
    return getattr(norm, "inner", None) == 2 and getattr(norm, "outer", None) == 2
