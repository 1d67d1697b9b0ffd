"""Plain parameter objects that clone, pickle and grid-search as scikit-learn's do."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Self


class Parameters:
    """Base of the dataclasses handed to an engine: losses, norms, pools and options.

    ``get_params`` and ``set_params`` are all that ``sklearn.clone`` and nested names such as
    ``loss__margin`` in a grid search need. Parts in a list or tuple have their positions as names:
    ``pool__0__max_bins`` is a parameter of the first part of a pool.
    """

    #: The field that holds the list or tuple of parts; empty where there is none.
    _parts: ClassVar[str] = ""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name; with ``deep`` also parts and the fields of nested objects."""
        params = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # every subclass is a dataclass
        if not deep:
            return params
        params.update(self._part_params())
        for name, value in list(params.items()):
            if hasattr(value, "get_params") and not isinstance(value, type):
                nested = value.get_params(deep=True)
                params.update({f"{name}__{inner}": part for inner, part in nested.items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set fields by name, parts by position, and nested ones as ``outer__inner``."""
        own = self.get_params(deep=False)
        # Fields first, then parts of them, then what is inside of either.
        for name in sorted(params, key=lambda name: ("__" in name, name not in own)):
            head, _, tail = name.partition("__")
            value = self._named(head)
            if tail and not hasattr(value, "set_params"):
                raise ValueError(
                    f"{name} cannot be set: {head}={value!r} has no parameters. Give {head} an "
                    f"object that has {tail!r} first."
                )
            if tail:
                value.set_params(**{tail: params[name]})
            elif head in own:
                object.__setattr__(self, head, params[name])  # also where fields are frozen
            else:
                parts = getattr(self, self._parts)
                changed = [params[name] if str(at) == head else p for at, p in enumerate(parts)]
                setattr(self, self._parts, type(parts)(changed))
        return self

    def _part_params(self) -> dict[str, Any]:
        """Return the parts by position, as texts."""
        parts = getattr(self, self._parts) if self._parts else ()
        if not isinstance(parts, (list, tuple)):
            return {}
        return {str(place): part for place, part in enumerate(parts)}

    def _named(self, name: str) -> Any:
        """Return a field or a part; raise for a name that there is not."""
        known = {**self.get_params(deep=False), **self._part_params()}
        if name not in known:
            raise ValueError(
                f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known)}."
            )
        return known[name]
