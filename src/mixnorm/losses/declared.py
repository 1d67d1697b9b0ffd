"""What a loss says of itself, so that nobody has to ask for its class."""

from __future__ import annotations

from typing import Any, ClassVar

from mixnorm._params import Parameters


class Declared(Parameters):
    """A loss that declares what engines and estimators may know of it.

    A subclass with a value (or a distance) of its own loses what it inherits about the value, and
    declares it anew where it is still true.
    """

    is_classifier: ClassVar[bool] = False
    is_binary: ClassVar[bool] = False
    #: What users call the loss; a joint and a scalar loss may have the same name.
    name: ClassVar[str | None] = None
    #: The power of a common factor of scores and targets that can be taken out of the loss, which
    #: is then one of their difference; None where there is none.
    degree: ClassVar[int | None] = None
    #: The parameter that is in units of the targets.
    scaled_parameter: ClassVar[str | None] = None
    #: The number of the loss in compiled loops over rows; without one it is asked row by row.
    row_code: ClassVar[int | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not {"value_and_residual", "distance"}.isdisjoint(vars(cls)):
            for trait in ("degree", "row_code"):
                if trait not in vars(cls):
                    setattr(cls, trait, None)

    @property
    def row_constants(self) -> tuple[float, ...]:
        """The numbers that the compiled loop needs, four at most."""
        return ()
