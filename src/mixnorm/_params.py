"""Plain parameter objects that clone, pickle and grid-search as scikit-learn's do."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self


class Parameters:
    """Base of the dataclasses handed to an engine: losses, norms and pools.

    ``get_params`` and ``set_params`` are all that ``sklearn.clone`` and nested names such as
    ``loss__margin`` in a grid search need.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name; with ``deep`` also the fields of nested objects."""
        params: dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            params[field.name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                nested = value.get_params(deep=True)
                params.update({f"{field.name}__{name}": part for name, part in nested.items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set fields by name, nested ones as ``outer__inner``."""
        own = self.get_params(deep=False)
        for name, value in params.items():
            head, _, tail = name.partition("__")
            if head not in own:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {head!r}; it has {sorted(own)}."
                )
            if tail:
                getattr(self, head).set_params(**{tail: value})
            else:
                setattr(self, head, value)
        return self
