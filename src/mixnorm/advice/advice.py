"""Advice on norms: the figures of every norm, the choice, and the reasons."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from mixnorm.advice.curves import NormCurve
from mixnorm.bounds import Bound
from mixnorm.norms import Norm


@dataclass(frozen=True, eq=False)
class NormAdvice:
    """The figures of one norm.

    Attributes
    ----------
    name : str
        The name of the norm.
    norm : Norm
        The norm itself.
    curve : NormCurve
        Held-out losses and errors along its penalties.
    data_radius : float
        The largest dual norm of an example, for the strongly convex norm of the proofs.
    comparator : float
        The norm of weights whose held-out loss is the level that all norms reach.
    bound : Bound or None
        The bound on the excess risk of such weights; None if the theory has none for the norm.
    """

    name: str
    norm: Norm = field(repr=False)
    curve: NormCurve = field(repr=False)
    data_radius: float
    comparator: float
    bound: Bound | None = field(repr=False)

    @property
    def error(self) -> float:
        """The held-out error at the best penalty."""
        return float(self.curve.errors[:, self.curve.best].mean())

    @property
    def loss(self) -> float:
        """The held-out loss at the best penalty."""
        return float(self.curve.losses[:, self.curve.best].mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the held-out error, over folds."""
        return self.curve.standard_error(self.curve.errors[:, self.curve.best])

    @property
    def columns(self) -> float:
        """The mean number of columns with weight, at the best penalty."""
        return float(self.curve.columns[self.curve.best])

    @property
    def rank(self) -> float:
        """The mean rank of the weights, at the best penalty."""
        return float(self.curve.ranks[self.curve.best])

    @property
    def alpha(self) -> float:
        """The best penalty."""
        return float(self.curve.alphas[self.curve.best])

    @property
    def seconds(self) -> float:
        """The time that the fits took, in seconds."""
        return self.curve.seconds


@dataclass(frozen=True, eq=False)
class Advice:
    """The norm to use, the figures behind the choice, and the model with this norm.

    Attributes
    ----------
    norms : list of NormAdvice
        All norms, the best first.
    best_norm_ : str
        The norm with the smallest held-out error.
    best_estimator_ : estimator
        The model with this norm, fitted on all rows in their original units with the best
        penalty.
    why : str
        The reasons for the choice, in words.
    verdict : {"clear", "tie", "nothing", "alone"}
        ``"clear"``: one norm is better than the others. ``"tie"``: several norms are equally good.
        ``"nothing"``: no norm helps. ``"alone"``: only one norm was compared.
    null_error : float
        The held-out error of the model without features.
    what : str
        The kind of error, in words.
    n_samples, n_features, n_outputs : int
        Sizes of the data.
    n_used : int
        The number of rows on which the norms were compared.
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
        names = [one.name for one in self.norms]
        raise KeyError(f"{name!r} was not compared; choose one of {names}")

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
        """Return the place of every norm with a bound, from 1; equal bounds share a place."""
        found: dict[str, int] = {}
        before, rank = None, 0
        for place, one in enumerate(sort_by_bound(self.norms), 1):
            rank = rank if before is not None and have_same_bound(before, one) else place
            found[one.name], before = rank, one
        return found

    def describe_more_rows(self, times: float = 10.0) -> str:
        """Return a sentence on the bound of the best norm with ``times`` as many rows."""
        bound = self.norms[0].bound
        if bound is None or not bound.value > 0.0 or self.verdict == "nothing":
            return ""
        return bound.at(times * bound.inputs["n"]).sentence

    def __repr__(self) -> str:
        from mixnorm.advice.table import format_text

        return format_text(self)

    def _repr_html_(self) -> str:
        from mixnorm.advice.table import format_html

        return format_html(self)


def sort_by_bound(norms: list[NormAdvice]) -> list[NormAdvice]:
    """Return the norms that have a bound, the smallest bound first."""
    known = [(one.bound.value, one) for one in norms if one.bound is not None]
    return [one for _, one in sorted(known, key=itemgetter(0))]


def have_same_bound(one: NormAdvice, other: NormAdvice) -> bool:
    """Tell whether two bounds are equal up to the accuracy of the fitted weights."""
    if one.bound is None or other.bound is None:
        return False
    return math.isclose(one.bound.value, other.bound.value, rel_tol=0.01)
