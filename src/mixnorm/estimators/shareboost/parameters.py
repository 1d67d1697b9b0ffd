"""The parameters of the estimators on the greedy engine."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, Self

from mixnorm.engines.greedy import RULES, GreedyOptions
from mixnorm.engines.penalties import as_penalty
from mixnorm.estimators._common.inputs import DEFAULT_SIZE
from mixnorm.estimators._common.parameters import (
    By,
    CheckedParameters,
    Loss,
    Number,
    Of,
    OneOf,
    Or,
    Seed,
    Switch,
    Whole,
    maybe,
)
from mixnorm.pools import as_pool, scale_name

ALPHA = Or(Number(least=0), ("auto",))
_SIZE_OF_MODEL = Whole(least=1, why=f"None chooses at most {DEFAULT_SIZE}")
_KINDS_OF_OPTIONS = "give a GreedyOptions, or None for the defaults"
#: The allowed values of every option.
OPTION_KINDS = {
    "penalty": By(as_penalty),
    "rule": OneOf(sorted(RULES)),
    "swaps": Whole(least=0),
    "backward": Whole(least=0),
    "tune": Whole(least=0),
    "atoms_per_round": Whole(least=1),
    "rounds_per_input": Whole(least=1),
    "scale": By(scale_name),
    "tol": Number(least=0),
    "max_iter": Whole(least=1),
    "scan": OneOf(["exact", "sample"]),
}


@dataclass(frozen=True)
class _Options(Of):
    """A kind of parameter: an object of options of the greedy engine, with allowed values."""

    def check(self, name: str, value: Any, others: tuple[Any, ...] = ()) -> None:
        """Raise for the first option whose value is not allowed."""
        super().check(name, value)
        for option, kind in OPTION_KINDS.items():
            kind.check(option, getattr(value, option))


Options = Annotated[GreedyOptions | None, maybe(_Options(GreedyOptions, why=_KINDS_OF_OPTIONS))]


@dataclass(eq=False, repr=False)
class GreedyParameters(CheckedParameters):
    """The parameters of a greedy fit, for one or all classes."""

    n_features_to_select: Annotated[int | None, maybe(_SIZE_OF_MODEL)] = None
    _: KW_ONLY
    alpha: Annotated[float | str, ALPHA] = "auto"
    loss: Loss = None
    pool: Annotated[Any, maybe(By(partial(as_pool, name="pool=")))] = None
    max_inputs: Annotated[int | None, maybe(Whole(least=1))] = None
    cost_budget: Annotated[float | None, maybe(Number(above=0))] = None
    fit_intercept: Switch = True
    random_state: Seed = None
    options: Options = None

    @property
    def options_(self) -> GreedyOptions:
        """The options in use: those given, or the defaults."""
        return GreedyOptions() if self.options is None else self.options

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, options as ``options__rule``.

        The options are copied, so that other estimators keep theirs; None is replaced by the
        defaults.
        """
        changed = {name: params.pop(name) for name in [*params] if name.startswith("options__")}
        super().set_params(**params)  # type: ignore[misc]  # of scikit-learn, further up
        if changed:
            inner = {name.removeprefix("options__"): value for name, value in changed.items()}
            # A new object, so that clones and other estimators with the same options keep theirs.
            self.options = copy(self.options_).set_params(**inner)
        return self


@dataclass(eq=False, repr=False)
class PathParameters(GreedyParameters):
    """The parameters of ShareBoost."""

    _: KW_ONLY
    warm_start: Switch = False
