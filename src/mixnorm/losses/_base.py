"""The seam between engines and losses."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable


@runtime_checkable
class Loss(Protocol):
    """What an engine may ask of a loss.

    Scores, residuals and curvatures have shape ``(n_samples, n_outputs)``; ``weight`` has shape
    ``(n_samples,)`` and sums to one, so that every value is a weighted mean over samples. All
    arrays are of one namespace, dtype and device.
    """

    #: Adding one constant to all scores of a sample leaves the loss unchanged.
    shift_invariant: ClassVar[bool]
    #: Largest eigenvalue of the Hessian in the scores of one sample (for the soft-max losses this
    #: is Böhning's factor).
    smoothness: ClassVar[float]
    #: Lipschitz constant in the Euclidean norm of one sample's scores; ``inf`` where there is none.
    lipschitz: ClassVar[float]
    #: The curvature does not depend on the scores.
    constant_curvature: ClassVar[bool]
    #: Targets are class labels (encoded as 0 .. k-1) rather than numbers.
    is_classifier: ClassVar[bool]

    def encode(self, y: Any, n_outputs: int, like: Any) -> Any:
        """Prepare the targets once, in the namespace, dtype and device of ``like``."""
        ...

    def value_and_residual(self, scores: Any, target: Any, weight: Any) -> tuple[float, Any]:
        """Return the weighted mean loss and its derivative in the scores."""
        ...

    def curvature(self, residual: Any, target: Any, weight: Any) -> Any:
        """Return a diagonal model of the Hessian in the scores.

        Shape ``(n_samples, n_outputs)``, or ``(n_samples, 1)`` where all outputs share it.
        """
        ...

    def hessian_form(self, direction: Any, residual: Any, target: Any, weight: Any) -> float:
        """Return the second derivative of the weighted mean loss along ``direction``."""
        ...

    def column_hessian(self, column: Any, residual: Any, target: Any, weight: Any) -> Any:
        """Return the ``(n_outputs, n_outputs)`` Hessian in the weights of one column."""
        ...

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return ``b`` in ``loss(u + v) <= loss(u) + <grad, v> + b max_r |v_r|^2``."""
        ...

    def proba(self, scores: Any) -> Any:
        """Return class probabilities (classification losses only)."""
        ...

    def predict(self, scores: Any) -> Any:
        """Return class indices, or the scores themselves for a regression loss."""
        ...
