"""Several pools as one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from mixnorm._array import device_of, is_numpy, namespace
from mixnorm._params import Parameters
from mixnorm.pools.columns import working_dtype
from mixnorm.pools.cost import Cost
from mixnorm.pools.curvature import Curvature
from mixnorm.pools.products import check_numpy

# Of an atom whose pool knows no prices, beside one that does.
_PRICE = 1.0

Atom = tuple[int, Any]


@dataclass
class Union(Parameters):
    """The atoms of several pools: ``(0, atom)`` for those of the first, and so on.

    Parameters
    ----------
    pools : sequence of pools
        Where atoms come from; a tie goes to the earlier pool. Beside a pool with costs, an atom
        of a pool without them costs 1. Those in a list or tuple are parameters with their positions
        as names: ``pool__0`` of an estimator is the first, and ``pool__0__groups`` its groups.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import ShareBoostClassifier
    >>> from mixnorm.pools import Columns, Products
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> y = X[:, 0] + 2 * X[:, 1] * X[:, 3] > 0
    >>> pool = Union((Columns(), Products(linear=False)))
    >>> model = ShareBoostClassifier(2, pool=pool).fit(X, y)
    >>> sorted(model.path_["feature"])
    [(0, 0), (1, (1, 3))]
    """

    pools: Sequence[Any]

    plain: ClassVar[bool] = False
    _parts: ClassVar[str] = "pools"

    @property
    def draws(self) -> bool:
        """Whether a pool among them draws at random."""
        return any(getattr(pool, "draws", False) for pool in self._members())

    @property
    def grows(self) -> bool:
        """Whether a pool among them offers what depends on the excluded atoms."""
        return any(getattr(pool, "grows", False) for pool in self._members())

    @property
    def array_api(self) -> bool:
        """Whether all pools among them take arrays of other libraries as they are."""
        return all(getattr(pool, "array_api", False) for pool in self._members())

    @property
    def takes_images(self) -> bool:
        """Whether a pool among them makes its columns of images."""
        return any(getattr(pool, "takes_images", False) for pool in self._members())

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and columns of an image, where that is known."""
        shapes = (getattr(pool, "shape", None) for pool in self._members())
        return next((shape for shape in shapes if shape is not None), None)

    @property
    def learned(self) -> bool:
        """Whether a pool among them has learned its columns from data."""
        return any(getattr(pool, "learned", False) for pool in self._members())

    def for_images(self, shape: tuple[int, int]) -> Union:
        """Return the union for images of this shape."""
        return Union(
            [
                pool.for_images(shape) if getattr(pool, "takes_images", False) else pool
                for pool in self._members()
            ]
        )

    def _members(self) -> Sequence[Any]:
        """Return the pools, if pools they are."""
        if isinstance(self.pools, str) or not isinstance(self.pools, Sequence) or not self.pools:
            raise TypeError(f"Union(pools={self.pools!r}) needs a list or tuple of pools.")
        for pool in self.pools:
            if isinstance(pool, type) or not hasattr(pool, "prepare"):
                raise TypeError(f"Union: {pool!r} is no pool; give an object, Columns() say.")
        return self.pools

    def prepare(
        self,
        X: Any,
        *,
        weight: Any | None = None,
        scale: bool | str = "std",
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> PreparedUnion:
        """Bind all pools to data.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            The data, of a kind that all pools take.
        weight : array of shape (n_samples,), optional
            Sample weights.
        scale : {"std", "max"} or bool
        fit_intercept : bool
            As for the pools.
        random_state : int, RandomState instance or None
            For the pools that draw at random.
        """
        if not self.array_api:
            check_numpy(X, "Union")
        options = {"weight": weight, "scale": scale, "fit_intercept": fit_intercept}
        drawing = {**options, "random_state": random_state}
        pools = [
            pool.prepare(X, **(drawing if getattr(pool, "draws", False) else options))
            for pool in self._members()
        ]
        priced = any(hasattr(pool, "price") for pool in pools)
        kind = PricedUnion if priced else PreparedUnion
        prepared = kind(pools, list(self._members()), X.shape[1])
        if any(hasattr(pool, "pool") for pool in pools):
            pairs = zip(pools, self._members(), strict=True)
            prepared.pool = Union([getattr(bound, "pool", member) for bound, member in pairs])
        return prepared

    def evaluate(self, X: Any, atoms: Sequence[Atom]) -> Any:
        """Return the unscaled columns of ``atoms`` on new data: ``(n_samples, total width)``."""
        widths = [self.n_columns(atom, X.shape[1]) for atom in atoms]
        if self.array_api and not hasattr(X, "toarray") and not is_numpy(X):
            return self._evaluate_elsewhere(X, atoms, widths)
        check_numpy(X, "Union")
        ends = np.cumsum(widths, dtype=np.intp)
        values: Any = None
        for number, pool in enumerate(self._members()):
            places = [place for place, atom in enumerate(atoms) if atom[0] == number]
            if not places:
                continue
            part = pool.evaluate(X, [atoms[place][1] for place in places])
            part = part.toarray() if hasattr(part, "toarray") else part
            if values is None:
                values = np.empty((X.shape[0], sum(widths)), dtype=part.dtype)
            elif part.dtype != values.dtype:
                values = values.astype(np.result_type(values, part))
            at = [np.arange(ends[place] - widths[place], ends[place]) for place in places]
            values[:, np.concatenate(at)] = part
        return np.empty((X.shape[0], 0)) if values is None else values

    def _evaluate_elsewhere(self, X: Any, atoms: Sequence[Atom], widths: list[int]) -> Any:
        """Do the same for an array of another library."""
        xp, found = namespace(X), dict[int, Any]()
        for number, pool in enumerate(self._members()):
            places = [place for place, atom in enumerate(atoms) if atom[0] == number]
            if not places:
                continue
            part, start = pool.evaluate(X, [atoms[place][1] for place in places]), 0
            for place in places:
                found[place] = part[:, start : start + widths[place]]
                start += widths[place]
        dtype = working_dtype(X)
        if not found:
            return xp.zeros((X.shape[0], 0), dtype=dtype, device=device_of(X))
        return xp.concat([xp.astype(found[p], dtype) for p in range(len(atoms))], axis=1)

    def labels(self, atoms: Sequence[Atom]) -> list[Any]:
        """Return how to name ``atoms``: by pool, and by what the pool calls them."""
        pools = self._members()
        return [(number, pools[number].labels([atom])[0]) for number, atom in atoms]

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Return an atom in the words of its pool, for columns of these names."""
        pool = self._members()[atom[0]]
        if hasattr(pool, "describe"):
            return str(pool.describe(atom[1], names))
        return str(pool.labels([atom[1]])[0])

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the columns that ``atoms`` read, in order."""
        pools = self._members()
        parts = [pools[number].feature_indices([atom], n_features) for number, atom in atoms]
        return np.concatenate([*parts, np.empty(0, dtype=np.intp)]).astype(np.intp)

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return what a row costs before the weights."""
        pool = self._members()[atom[0]]
        cost: Cost = pool.cost(atom[1], n_features) if hasattr(pool, "cost") else Cost(0, 0)
        return cost

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return how many columns ``atom`` has; raise for what is no atom of these pools."""
        pools = self._members()
        good = type(atom) is tuple and len(atom) == 2 and type(atom[0]) is int
        if not good or not 0 <= atom[0] < len(pools):
            raise ValueError(
                f"atoms of a Union are pairs of a pool's number below {len(pools)} and an atom of "
                f"that pool, not {str(atom)[:100]}"
            )
        return int(pools[atom[0]].n_columns(atom[1], n_features))


class PreparedUnion:
    """Several pools bound to the same data.

    Parameters
    ----------
    pools : list
        The pools, bound to the data.
    members : list
        The pools themselves.
    n_features : int
        Columns of the data.

    Attributes
    ----------
    pool : Union
        Only where a pool has learned from the data: what evaluates the atoms on other data.
    """

    pool: Union

    def __init__(self, pools: list[Any], members: list[Any], n_features: int) -> None:
        self._pools, self._members, self._n_features = pools, members, n_features

    @property
    def takes_curvature(self) -> bool:
        """Whether a pool can tell what Newton steps would gain."""
        return any(getattr(pool, "takes_curvature", False) for pool in self._pools)

    @property
    def n_usable(self) -> int:
        """Number of atoms that can be chosen, of all pools."""
        return sum(int(pool.n_usable) for pool in self._pools)

    def top(
        self,
        residual: Any,
        rule: str,
        m: int,
        exclude: frozenset[Hashable],
        inputs: frozenset[int] | None = None,
        curvature: Curvature | None = None,
    ) -> list[tuple[Atom, float]]:
        """Return the ``m`` atoms with the largest gradients, with their scores, best first."""
        return self._merged("top", residual, rule, m, exclude, inputs, curvature)

    def shortlist(
        self,
        residual: Any,
        rule: str,
        m: int,
        exclude: frozenset[Hashable],
        inputs: frozenset[int] | None = None,
        curvature: Curvature | None = None,
    ) -> list[tuple[Atom, float]]:
        """Return ``m`` good atoms, of all pools alike, the best first.

        Gradients of columns of different kinds say little about which gains more.
        """
        return self._merged("shortlist", residual, rule, m, exclude, inputs, curvature)

    def _merged(
        self,
        method: str,
        residual: Any,
        rule: str,
        m: int,
        exclude: frozenset[Hashable],
        inputs: frozenset[int] | None,
        curvature: Curvature | None = None,
        budget: float | None = None,
    ) -> list[tuple[Atom, float]]:
        """Ask all pools, and put what they offer in order."""
        found, places = list[tuple[Atom, float]](), list[int]()
        for number, pool in enumerate(self._pools):
            limits: dict[str, Any] = {} if inputs is None else {"inputs": inputs}
            if budget is not None and hasattr(pool, "price"):
                limits["budget"] = budget
            elif budget is not None and budget < _PRICE:
                continue
            if curvature is not None and getattr(pool, "takes_curvature", False):
                limits["curvature"] = curvature
            own = frozenset(atom for owner, atom in cast(Any, exclude) if owner == number)
            offers = getattr(pool, method, pool.top)(residual, rule, m, own, **limits)
            found += [((number, atom), score) for atom, score in offers]
            places += range(len(offers))
        worth = [-self._worth(offer) for offer in found]
        # By worth alone, or turn by turn.
        keys = worth if method == "top" else list(zip(places, worth, strict=True))
        order = sorted(range(len(found)), key=keys.__getitem__)
        return [found[place] for place in order[:m]]

    def _worth(self, offer: tuple[Atom, float]) -> float:
        """Return what offers are ranked by."""
        return offer[1]

    def columns(self, atom: Atom) -> Any:
        """Return the scaled columns of ``atom``, one per row: ``(width, n_samples)``."""
        return self._pools[atom[0]].columns(atom[1])

    def scale(self, atom: Atom) -> Any:
        """Return what the columns of ``atom`` were divided by."""
        return self._pools[atom[0]].scale(atom[1])

    def inputs(self, atom: Atom) -> frozenset[int]:
        """Return the columns that ``atom`` reads."""
        pool = self._pools[atom[0]]
        if hasattr(pool, "inputs"):
            return frozenset(pool.inputs(atom[1]))
        read = self._members[atom[0]].feature_indices([atom[1]], self._n_features)
        return frozenset(np.asarray(read).tolist())


class PricedUnion(PreparedUnion):
    """Several pools bound to the same data, the atoms of some of which have a price.

    Best means then the largest score over the root of the price.
    """

    def top(
        self,
        residual: Any,
        rule: str,
        m: int,
        exclude: frozenset[Hashable],
        inputs: frozenset[int] | None = None,
        curvature: Curvature | None = None,
        budget: float | None = None,
    ) -> list[tuple[Atom, float]]:
        """Return the ``m`` best atoms with their scores; with ``budget``, none that costs more."""
        return self._merged("top", residual, rule, m, exclude, inputs, curvature, budget)

    def shortlist(
        self,
        residual: Any,
        rule: str,
        m: int,
        exclude: frozenset[Hashable],
        inputs: frozenset[int] | None = None,
        curvature: Curvature | None = None,
        budget: float | None = None,
    ) -> list[tuple[Atom, float]]:
        """Return ``m`` good atoms; with ``budget``, none that costs more."""
        return self._merged("shortlist", residual, rule, m, exclude, inputs, curvature, budget)

    def _worth(self, offer: tuple[Atom, float]) -> float:
        return offer[1] / math.sqrt(self.price(offer[0]))

    def price(self, atom: Atom) -> float:
        """Return what ``atom`` costs."""
        pool = self._pools[atom[0]]
        return float(pool.price(atom[1])) if hasattr(pool, "price") else _PRICE
