"""Pools of the user's own: adapters for objects without a base class of this package."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

from mixnorm._array import Array
from mixnorm._params import Parameters
from mixnorm.pools.base import Offers, Pool, PreparedPool

_POOL_NEEDS = ("prepare", "evaluate", "feature_indices", "n_columns")
_PREPARED_NEEDS = ("top", "columns")
# Attributes taken from the user's object where it has them, and from the base class otherwise.
_POOL_MAY_HAVE = {name for name in set(dir(Pool)) - set(dir(Parameters)) if name[0] != "_"}
_POOL_MAY_HAVE -= {"given", "member", "prepare"}
_PREPARED_MAY_HAVE = {"n_usable", "top", "columns", "scale", "inputs", "price", "adjust"}
_PREPARED_MAY_HAVE |= {"takes_curvature", "counts_inputs"}


def as_pool(pool: Any, name: str = "") -> Pool:
    """Return a pool with all methods: the object itself, or an adapter.

    Parameters
    ----------
    pool : object
        A pool of this package, or an object with the methods that a pool must have.
    name : str
        Text before the object in errors, ``"pool="`` for example.
    """
    if isinstance(pool, Pool):
        return pool
    if isinstance(pool, type) or not _has(pool, "prepare"):
        raise TypeError(
            f"{name}{pool!r} is not a pool; give an object of mixnorm.pools, such as Columns()."
        )
    _check_has(pool, _POOL_NEEDS, "a pool")
    return OwnPool(pool)


def as_prepared(prepared: Any) -> PreparedPool:
    """Return a pool bound to data, with all methods: the object itself, or an adapter."""
    if isinstance(prepared, PreparedPool):
        return prepared
    _check_has(prepared, _PREPARED_NEEDS, "a pool bound to data")
    return OwnPrepared(prepared)


def bind(pool: Any, X: Array, **options: Any) -> PreparedPool:
    """Bind any pool to data; ``options`` are the keywords of :meth:`Pool.prepare`.

    The ``pool`` of the result evaluates its atoms on other data.
    """
    pool = as_pool(pool)
    prepared = as_prepared(pool.prepare(X, **options))
    # A pool that has learned its atoms from the data returns the one that knows them.
    prepared.pool = pool if prepared.pool is None else as_pool(prepared.pool)
    prepared.n_features = X.shape[1]
    return prepared


class _Adapter:
    """Base of adapters, which take what they may from the user's object where it has that."""

    own: Any
    may_have: ClassVar[set[str]]

    def __getattribute__(self, name: str) -> Any:
        # Not ``__getattr__``: the base class has defaults, which would be found first.
        if name in type(self).may_have and _has(self.own, name):
            return getattr(self.own, name)
        return super().__getattribute__(name)

    @property
    def given(self) -> Any:
        """The user's object."""
        return self.own


@dataclass(repr=False)
class OwnPool(_Adapter, Pool):
    """Adapter that makes a user's object a pool.

    Parameters
    ----------
    own : object
        The object, with the methods that a pool must have, and some that it may have.
    """

    own: Any
    may_have: ClassVar[set[str]] = _POOL_MAY_HAVE

    def __repr__(self) -> str:
        return repr(self.own)

    def prepare(self, X: Array, *, random_state: Any = None, **options: Any) -> Any:
        """Bind the pool to data, with the ``random_state`` if it accepts one."""
        # Only pools that draw need the keyword, and others may not accept it.
        takes = "random_state" in inspect.signature(self.own.prepare).parameters
        if takes or getattr(self.own, "draws", False):
            options["random_state"] = random_state
        return self.own.prepare(X, **options)


class OwnPrepared(_Adapter, PreparedPool):
    """Adapter that makes a user's object a pool bound to data.

    Parameters
    ----------
    own : object
        The object, with ``top``, ``columns``, and some of the other methods.
    """

    may_have: ClassVar[set[str]] = _PREPARED_MAY_HAVE

    def __init__(self, own: Any) -> None:
        self.own = own
        self.pool = getattr(own, "pool", None)

    @property
    def priced(self) -> bool:
        """Whether the object has prices."""
        return self._can("price", "priced")

    @property
    def adjustable(self) -> bool:  # type: ignore[override]  # it depends on the object
        """Whether the object can adjust its atoms."""
        return self._can("adjust", "adjustable")

    @property
    def tells_inputs(self) -> bool:
        """Whether the object, or its pool, knows the features that an atom reads."""
        return _has(self.own, "inputs") or self.pool is not None

    def shortlist(self, *args: Any, **limits: Any) -> Offers:
        """Return the object's shortlist, or its best atoms if it has no such method."""
        method = getattr(self.own, "shortlist", None)
        # An object that delegates to a pool of this package finds the default there.
        own = getattr(method, "__func__", method) is not PreparedPool.shortlist
        found: Offers = (method if method and own else self.own.top)(*args, **limits)
        return found

    def _can(self, method: str, flag: str) -> bool:
        """Tell whether the object has a method, also where it delegates to another object."""
        if method in dir(self.own):
            return True
        return bool(getattr(self.own, flag, _has(self.own, method)))


def _check_has(own: Any, names: tuple[str, ...], what: str) -> None:
    missing = [name for name in names if not _has(own, name)]
    if missing:
        raise TypeError(
            f"{type(own).__name__} has no method {missing[0]}, which {what} needs; it needs "
            f"{', '.join(names)}."
        )


def _has(own: Any, name: str) -> bool:
    """Tell whether an object has an attribute, also where it delegates to another object."""
    return hasattr(own, name)
