"""mixnorm's settings, measured like the other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.methods import Method, Point, Ridged
from benchmarks.harness.splits import Matrix


@dataclass(frozen=True)
class ShareBoost(Ridged):
    """``ShareBoostClassifier`` with the given settings; one fit gives every size."""

    needs: ClassVar[str] = "mixnorm"
    path: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    ours: ClassVar[bool] = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def setup(self) -> None:
        from mixnorm import ShareBoostClassifier  # noqa: F401

    def fit_at(self, X: Matrix, y: np.ndarray, size: int, value: float | None) -> Any:
        from mixnorm import ShareBoostClassifier

        settings = dict(self.settings)
        if value is not None:
            settings["alpha"] = value / (2 * len(y))
        return ShareBoostClassifier(size).set_params(**settings).fit(X, y)

    def models(self, fitted: Any, size: int) -> Sequence[Point]:
        # Rounds have wall-clock times; only their shares of the fit are used here.
        rounds = np.asarray(fitted.path_["seconds"], dtype=float)
        shares = np.cumsum(rounds) / rounds.sum()

        def point(count: int) -> Point:
            model = fitted.truncate(count)
            return Point(count, len(model.selected_), model.predict, float(shares[count - 1]))

        return [point(count) for count in range(1, len(rounds) + 1)]


OURS: dict[str, Method] = {
    "mixnorm": ShareBoost(),
    "mixnorm-tuned": ShareBoost(tuned=True),
    "mixnorm-swaps": ShareBoost(settings={"options__swaps": 1}),
}
