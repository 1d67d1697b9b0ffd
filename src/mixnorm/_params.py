"""Plain parameter objects that clone, pickle and grid-search as scikit-learn's do."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Self


class Parameters:
    """Base of the dataclasses handed to an engine: losses, norms, pools and options.

    ``get_params`` and ``set_params`` are enough for ``sklearn.clone`` and for nested names such as
    ``loss__margin`` in a grid search. The names of parts in a list or tuple are their positions:
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
            nested_params = getattr(value, "get_params", None)
            if nested_params is not None and not isinstance(value, type):
                nested = nested_params(deep=True).items()
                params.update({f"{name}__{inner}": part for inner, part in nested})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set fields by name, parts by position, and nested ones as ``outer__inner``."""
        own = self.get_params(deep=False)
        # Fields come first, then parts, then parameters inside either.
        # A new object and its parameters may be set in one call: the object must come first.
        for name in sorted(params, key=lambda name: ("__" in name, name not in own)):
            head, _, tail = name.partition("__")
            value = self._find(head)
            if tail and getattr(value, "set_params", None) is None:
                raise ValueError(
                    f"{name} cannot be set: {head}={value!r} has no parameters. Give {head} an "
                    f"object that has {tail!r} first."
                )
            if tail:
                value.set_params(**{tail: params[name]})
            elif head in own:
                object.__setattr__(self, head, params[name])  # works for frozen dataclasses too
            else:
                parts = getattr(self, self._parts)
                changed = [params[name] if str(at) == head else p for at, p in enumerate(parts)]
                setattr(self, self._parts, type(parts)(changed))
        return self

    def _part_params(self) -> dict[str, Any]:
        """Return the parts; their names are their positions, as texts."""
        parts = getattr(self, self._parts) if self._parts else ()
        if not isinstance(parts, (list, tuple)):
            return {}
        return {str(place): part for place, part in enumerate(parts)}

    def _find(self, name: str) -> Any:
        """Return a field or a part by its name; raise for an unknown name."""
        known = {**self.get_params(deep=False), **self._part_params()}
        if name not in known:
            raise ValueError(
                f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known)}."
            )
        return known[name]
