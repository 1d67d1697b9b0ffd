"""What a model file keeps of a learner with a tensor kernel."""

from __future__ import annotations

from typing import Any


class StoredTensorMixin:
    """The two methods that :mod:`mixnorm.storage` asks for."""

    def _fitted_state(self: Any) -> dict[str, Any]:
        """Return the fitted attributes."""
        left_out = self.get_params(deep=False)
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        return dict(sorted(state.items()))

    def _restore(self: Any, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        self._check_parameters()
        self.__dict__.update(state)
