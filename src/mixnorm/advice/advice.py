"""What is advised: the figures of every norm, the choice, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from mixnorm.advice.curves import Curve
from mixnorm.bounds import Bound


@dataclass(frozen=True, eq=False)
class NormAdvice:
    """What was found of one norm.

    Attributes
    ----------
    name : str
        The norm.
    norm : Norm
        The norm as an object.
    curve : Curve
        Held-out losses and errors along its penalties.
    data_radius : float
        The largest dual norm of an example, under the norm that proofs are about.
    comparator : float
        The norm of weights that reach the held-out loss that all norms reach.
    bound : Bound or None
        What the theory says of the excess risk of such weights; None for norms without.
    """

    name: str
    norm: Any = field(repr=False)
    curve: Curve = field(repr=False)
    data_radius: float
    comparator: float
    bound: Bound | None = field(repr=False)

    @property
    def error(self) -> float:
        """The held-out error at the best penalty."""
        return self.curve.error

    @property
    def loss(self) -> float:
        """The held-out loss at the best penalty."""
        return float(self.curve.losses[:, self.curve.best].mean())

    @property
    def standard_error(self) -> float:
        """The standard error of that, over folds."""
        return self.curve.error_of(self.curve.errors[:, self.curve.best])

    @property
    def columns(self) -> float:
        """Columns with weight, at the best penalty."""
        return float(self.curve.columns[self.curve.best])

    @property
    def rank(self) -> float:
        """The rank of the weights, at the best penalty."""
        return float(self.curve.ranks[self.curve.best])

    @property
    def alpha(self) -> float:
        """The best penalty."""
        return float(self.curve.alphas[self.curve.best])

    @property
    def seconds(self) -> float:
        """What it took."""
        return self.curve.seconds


@dataclass(frozen=True, eq=False)
class Advice:
    """Which norm to use, what it rests on, and the model that it makes.

    Attributes
    ----------
    norms : list of NormAdvice
        All norms, the best first.
    best_norm_ : str
        The norm with the smallest held-out error.
    best_estimator_ : estimator
        Fitted on all rows, with its best penalty; it takes rows as they were given.
    why : str
        What drove the choice, in words.
    verdict : {"clear", "tie", "nothing", "alone"}
        Whether one norm is better than the others, several are as good, none helps, or no other
        was compared.
    null_error : float
        The held-out error without features.
    what : str
        What errors are.
    n_samples, n_features, n_outputs : int
        Sizes of the data.
    n_used : int
        Rows that the norms were compared on.
    """

    norms: list[NormAdvice]
    best_estimator_: Any = field(repr=False)
    why: str
    verdict: str
    null_error: float
    what: str
    n_samples: int
    n_features: int
    n_outputs: int
    n_used: int

    @property
    def best_norm_(self) -> str:
        """The norm with the smallest held-out error."""
        return self.norms[0].name

    def __getitem__(self, name: str) -> NormAdvice:
        for found in self.norms:
            if found.name == name:
                return found
        raise KeyError(f"{name!r} was not compared; there are {[one.name for one in self.norms]}")

    def rows(self) -> list[dict[str, Any]]:
        """Return the table as a list of plain rows, the best norm first."""
        order = self.bound_order()
        return [
            {
                "norm": one.name,
                "held-out error": one.error,
                "standard error": one.standard_error,
                "data radius": one.data_radius,
                "comparator": one.comparator,
                "bound": None if one.bound is None else one.bound.value,
                "bound's place": order.get(one.name),
                "columns": one.columns,
                "rank": one.rank,
                "alpha": one.alpha,
                "seconds": one.seconds,
            }
            for one in self.norms
        ]

    def bound_order(self) -> dict[str, int]:
        """Return the place of every norm by its bound, from 1; norms without are left out."""
        found: dict[str, int] = {}
        before: NormAdvice | None = None
        for place, one in enumerate(by_bound(self.norms), 1):
            same = before is not None and same_bounds(one, before)
            found[one.name] = found[before.name] if before is not None and same else place
            before = one
        return found

    def projected(self, times: float = 10.0) -> str:
        """Return what the bound of the best norm would be with so many times the rows, in words."""
        bound = self.norms[0].bound
        if bound is None or not bound.value > 0.0 or self.verdict == "nothing":
            return ""
        return bound.at(times * bound.inputs["n"]).sentence

    def __repr__(self) -> str:
        from mixnorm.advice.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from mixnorm.advice.table import as_html

        return as_html(self)


def by_bound(norms: list[NormAdvice]) -> list[NormAdvice]:
    """Return the norms that have a bound, the smallest first."""
    known = [(one.bound.value, one) for one in norms if one.bound is not None]
    return [one for _, one in sorted(known, key=itemgetter(0))]


def same_bounds(one: NormAdvice, other: NormAdvice) -> bool:
    """Tell whether two bounds are the same, but for how exactly the weights are known."""
    if one.bound is None or other.bound is None:
        return False
    return math.isclose(one.bound.value, other.bound.value, rel_tol=0.01)
