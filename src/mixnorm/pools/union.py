"""Several pools as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from mixnorm._array import Array, device_of, is_numpy, is_sparse, namespace, to_dense
from mixnorm.pools.base import (
    Cost,
    Curvature,
    Excluded,
    Inputs,
    Offers,
    Pool,
    PoolData,
    PreparedPool,
    check_numpy,
    working_dtype,
)
from mixnorm.pools.own import as_pool, bind

Atom = tuple[int, Any]


@dataclass
class Union(Pool):
    """The atoms of several pools: ``(0, atom)`` for those of the first, and so on.

    Parameters
    ----------
    pools : sequence of pools
        The pools; ties go to the earlier one. Beside a pool with costs, each atom of a pool without
        costs has the cost 1. The pools of a list or tuple are parameters named by their positions:
        ``pool__0`` of an estimator is the first, and ``pool__0__groups`` its groups.

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

    _parts: ClassVar[str] = "pools"

    @property
    def grows(self) -> bool:  # type: ignore[override]  # these depend on the members
        """Whether the atoms that a pool offers depend on those that are excluded."""
        return any(pool.grows for pool in self._get_members())

    @property
    def array_api(self) -> bool:  # type: ignore[override]
        """Whether all pools accept arrays of other libraries than NumPy."""
        return all(pool.array_api for pool in self._get_members())

    @property
    def takes_images(self) -> bool:  # type: ignore[override]
        """Whether a pool makes its columns of images."""
        return any(pool.takes_images for pool in self._get_members())

    @property
    def learned(self) -> bool:  # type: ignore[override]
        """Whether a pool has learned its columns from data."""
        return any(pool.learned for pool in self._get_members())

    @property
    def shape(self) -> tuple[int, int] | None:  # type: ignore[override]
        """Height and width of an image, where known."""
        shapes = (pool.shape for pool in self._get_members())
        return next((shape for shape in shapes if shape is not None), None)

    def for_images(self, shape: tuple[int, int]) -> Union:
        """Return the union for images of this shape."""
        return Union([pool.for_images(shape).given for pool in self._get_members()])

    def member(self, atom: Atom) -> tuple[Pool, Any]:
        """Return the pool that an atom comes from, and its name for the atom."""
        return self._get_members()[atom[0]].member(atom[1])

    def _get_members(self) -> list[Pool]:
        """Return the pools; raise for other objects."""
        if isinstance(self.pools, str) or not isinstance(self.pools, Sequence) or not self.pools:
            raise TypeError(f"Union(pools={self.pools!r}) needs a list or tuple of pools.")
        return [as_pool(pool, "Union: ") for pool in self.pools]

    def _bind(self, data: PoolData) -> PreparedUnion:
        """Bind all pools to the data."""
        parts = [bind(pool, data.X, **data.options()) for pool in self._get_members()]
        prepared = PreparedUnion(parts)
        known = [part.pool.given for part in parts]
        # A pool that learned its atoms is replaced by the one that knows them.
        if any(own is not pool for own, pool in zip(known, self.pools, strict=True)):
            prepared.pool = Union(known)
        return prepared

    def evaluate(self, X: Array, atoms: Sequence[Atom]) -> Any:
        """Return the unscaled columns of ``atoms`` on new data: ``(n_samples, total width)``."""
        if not self.array_api:
            check_numpy(X, "Union")
        dtype, found = working_dtype(X), dict[int, Any]()
        for number, pool in enumerate(self._get_members()):
            places = [place for place, atom in enumerate(atoms) if atom[0] == number]
            if not places:
                continue
            # One call for all atoms of a pool, which may share work; then they go back in order.
            part, start = to_dense(pool.evaluate(X, [atoms[place][1] for place in places])), 0
            for place in places:
                stop = start + self.n_columns(atoms[place], X.shape[1])
                found[place], start = part[:, start:stop], stop
        columns = [found[place] for place in range(len(atoms))]
        if is_sparse(X) or is_numpy(X):
            return np.concatenate(columns or [np.empty((X.shape[0], 0))], axis=1)
        xp = namespace(X)
        nothing = xp.zeros((X.shape[0], 0), dtype=dtype, device=device_of(X))
        return xp.concat([nothing, *(xp.astype(part, dtype) for part in columns)], axis=1)

    def labels(self, atoms: Sequence[Atom]) -> list[Any]:
        """Return names of ``atoms``: the number of the pool, and its name for the atom."""
        pools = self._get_members()
        return [(number, pools[number].labels([atom])[0]) for number, atom in atoms]

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Describe an atom as its pool does, for features with these names."""
        return self._get_members()[atom[0]].describe(atom[1], names)

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the features that ``atoms`` read, in order."""
        pools = self._get_members()
        parts = [pools[number].feature_indices([atom], n_features) for number, atom in atoms]
        return np.concatenate([*parts, np.empty(0, dtype=np.intp)]).astype(np.intp)

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return the operations that the columns of an atom take."""
        return self._get_members()[atom[0]].cost(atom[1], n_features)

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return the number of columns of ``atom``; raise a ValueError for anything else."""
        pools = self._get_members()
        good = type(atom) is tuple and len(atom) == 2 and type(atom[0]) is int
        if not good or not 0 <= atom[0] < len(pools):
            raise ValueError(
                f"atoms of a Union are pairs of a pool's number below {len(pools)} and an atom of "
                f"that pool, not {str(atom)[:100]}"
            )
        return int(pools[atom[0]].n_columns(atom[1], n_features))


class PreparedUnion(PreparedPool):
    """Several pools bound to the same data.

    Atoms are ranked by the score over the root of the price.

    Parameters
    ----------
    pools : list of PreparedPool
        The pools, bound to the data.
    """

    def __init__(self, pools: list[PreparedPool]) -> None:
        self._pools = pools
        self.n_usable = sum(int(pool.n_usable) for pool in pools)

    @property
    def takes_curvature(self) -> bool:  # type: ignore[override]  # it depends on the members
        """Whether a pool ranks atoms by the gains of Newton steps."""
        return any(pool.takes_curvature for pool in self._pools)

    @property
    def priced(self) -> bool:
        """Whether the atoms of a pool have prices."""
        return any(pool.priced for pool in self._pools)

    def top(
        self,
        residual: Array,
        rule: str,
        m: int,
        exclude: Excluded,
        inputs: Inputs = None,
        **own: Any,
    ) -> Offers:
        """Return the ``m`` best atoms with their scores; with ``budget``, none that costs more."""
        return self._merge("top", residual, rule, m, exclude, inputs, **own)

    def shortlist(self, *args: Any, **limits: Any) -> Offers:
        """Return ``m`` good atoms, taken from the pools in turn, the best first.

        Gradients of columns of different kinds say little about which gains more.
        """
        return self._merge("shortlist", *args, **limits)

    def _merge(
        self,
        method: str,
        residual: Array,
        rule: str,
        m: int,
        exclude: Excluded,
        inputs: Inputs = None,
        curvature: Curvature | None = None,
        budget: float | None = None,
    ) -> Offers:
        """Ask all pools, and rank the atoms that they offer."""
        found, places = list[tuple[Atom, float]](), list[int]()
        for number, pool in enumerate(self._pools):
            limits: dict[str, Any] = {} if inputs is None else {"inputs": inputs}
            if budget is not None and pool.priced:
                limits["budget"] = budget
            elif budget is not None and budget < 1.0:  # the price of all atoms without prices
                continue
            if curvature is not None and pool.takes_curvature:
                limits["curvature"] = curvature
            # Each pool knows its atoms by its own names.
            own = frozenset(atom for owner, atom in cast(Any, exclude) if owner == number)
            offers = getattr(pool, method)(residual, rule, m, own, **limits)
            found += [((number, atom), score) for atom, score in offers]
            places += range(len(offers))
        # Sorting keeps the order of ties: the earlier pool first.
        worth = [-score / math.sqrt(self.price(atom)) for atom, score in found]
        # A shortlist takes the best atoms of all pools first, then the second best, and so on.
        keys = worth if method == "top" else list(zip(places, worth, strict=True))
        order = sorted(range(len(found)), key=keys.__getitem__)
        return [found[place] for place in order[:m]]

    def columns(self, atom: Atom) -> Any:
        """Return the scaled columns of ``atom``, one per row: ``(width, n_samples)``."""
        return self._pools[atom[0]].columns(atom[1])

    def scale(self, atom: Atom) -> Any:
        """Return the divisors of the columns of ``atom``."""
        return self._pools[atom[0]].scale(atom[1])

    def inputs(self, atom: Atom) -> frozenset[int]:
        """Return the features that ``atom`` reads."""
        return self._pools[atom[0]].inputs(atom[1])

    def price(self, atom: Atom) -> float:
        """Return the price of ``atom``."""
        return self._pools[atom[0]].price(atom[1])
