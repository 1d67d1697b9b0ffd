"""The parameters of the estimators on the greedy engine."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from mixnorm.engines.greedy import RULES
from mixnorm.engines.penalties import as_penalty
from mixnorm.estimators._common.inputs import DEFAULT_SIZE
from mixnorm.estimators._common.parameters import (
    By,
    CheckedParameters,
    Count,
    Loss,
    Number,
    OneOf,
    Or,
    Seed,
    Switch,
    Tolerance,
    Whole,
    maybe,
)
from mixnorm.pools import as_pool, scale_name

ALPHA = Or(Number(least=0), ("auto",))
_SIZE = Whole(least=1, why=f"None chooses at most {DEFAULT_SIZE}")
Times = Annotated[int, Whole(least=0)]


def check_pool(pool: Any) -> None:
    """Raise a clear error unless an object can be used as a pool."""
    if pool is not None:
        as_pool(pool, "pool=")


@dataclass(eq=False, repr=False)
class GreedyParameters(CheckedParameters):
    """What the choice of features for one or all classes depends on."""

    n_features_to_select: Annotated[int | None, maybe(_SIZE)] = None
    _: KW_ONLY
    alpha: Annotated[float | str, ALPHA] = "auto"
    penalty: Annotated[Any, By(as_penalty)] = "ridge"
    loss: Loss = None
    rule: Annotated[str, OneOf(sorted(RULES))] = "joint"
    swaps: Times = 0
    backward: Times = 0
    atoms_per_round: Count = 1
    pool: Annotated[Any, By(check_pool)] = None
    max_inputs: Annotated[int | None, maybe(Whole(least=1))] = None
    rounds_per_input: Count = 1
    cost_budget: Annotated[float | None, maybe(Number(above=0))] = None
    fit_intercept: Switch = True
    scale: Annotated[bool | str, By(scale_name)] = "std"
    tol: Tolerance = 1e-4
    max_iter: Count = 500
    random_state: Seed = None


@dataclass(eq=False, repr=False)
class PathParameters(GreedyParameters):
    """What the path of ShareBoost depends on besides."""

    _: KW_ONLY
    tune: Times = 0
    warm_start: Switch = False
