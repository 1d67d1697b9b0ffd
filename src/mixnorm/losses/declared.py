"""The traits that a loss declares, so that no engine or estimator has to ask for its class."""

from __future__ import annotations

from typing import Any, ClassVar

from mixnorm._array import Array
from mixnorm._params import Parameters


class Declared(Parameters):
    """A loss that declares what engines and estimators may know about it.

    A subclass that defines its own value (or distance) does not inherit the traits that describe
    the value. It declares them again where they still hold.
    """

    is_classifier: ClassVar[bool] = False
    is_binary: ClassVar[bool] = False
    #: The name that users give; a joint and a scalar loss may share a name.
    name: ClassVar[str | None] = None
    #: The power with which a common factor of scores and targets comes out of the loss, which then
    #: depends on their difference alone; None for other losses.
    degree: ClassVar[int | None] = None
    #: The parameter that is in units of the targets.
    scaled_parameter: ClassVar[str | None] = None
    #: The number of the loss in compiled loops over rows; None if it has to be called row by row.
    row_code: ClassVar[int | None] = None
    _no_probabilities: ClassVar[str] = "is a regression loss and has no class probabilities."

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not {"value_and_residual", "distance"}.isdisjoint(vars(cls)):
            for trait in ("degree", "row_code"):
                if trait not in vars(cls):
                    setattr(cls, trait, None)

    @property
    def row_constants(self) -> tuple[float, ...]:
        """The numbers that the compiled loop needs, at most four."""
        return ()

    def proba(self, scores: Array) -> Any:
        """Raise TypeError: the scores of this loss determine no class probabilities."""
        raise TypeError(f"{type(self).__name__} {self._no_probabilities}")
