"""The protocols by which engines use losses."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from mixnorm._array import Array
from mixnorm.losses.arrays import Numbers


@runtime_checkable
class Loss(Protocol):
    """A loss, as every engine uses it.

    Scores, residuals and curvatures have shape ``(n_samples, n_outputs)``; ``weight`` has shape
    ``(n_samples,)`` and sums to one, so that every value is a weighted mean over samples. All
    arrays have the same namespace, dtype and device.

    A loss on labels is joint: all scores of a sample together have one loss. Any other loss is
    scalar: each score has a loss of its own, and these are summed over the outputs. Its constants
    are those of one output, and its ``weight`` may also have shape ``(n_samples, n_outputs)``.

    A loss may also declare ``degree``, ``scaled_parameter``, ``row_code`` and ``row_constants``, as
    those of this package do. A loss without these attributes has none of these traits.
    """

    #: Adding one constant to all scores of a sample leaves the loss unchanged.
    shift_invariant: ClassVar[bool]
    #: Targets are class labels (encoded as 0 .. k-1) rather than numbers.
    is_classifier: ClassVar[bool]
    #: Targets are -1 and +1, separately for each output.
    is_binary: ClassVar[bool]

    @property
    def smoothness(self) -> float:
        """Largest eigenvalue of the Hessian in the scores of one sample; ``inf`` if unbounded.

        For the soft-max losses this is Böhning's factor (:eq:`bohning-bound`).
        """
        ...

    @property
    def lipschitz(self) -> float:
        """Lipschitz constant in the Euclidean norm of a sample's scores; ``inf`` if unbounded."""
        ...

    def encode(self, y: Array, n_outputs: int, like: Array) -> Any:
        """Return the targets, prepared once in the namespace, dtype and device of ``like``."""
        ...

    def value_and_residual(self, scores: Array, target: Any, weight: Array) -> tuple[float, Any]:
        """Return the weighted mean loss and its derivative in the scores.

        Where the loss has no derivative, the result is any subgradient.
        """
        ...

    def proba(self, scores: Array) -> Any:
        """Return class probabilities; raise TypeError if the loss has none."""
        ...

    def predict(self, scores: Array) -> Any:
        """Return class indices, signs for targets -1 and +1, or the scores for a regression."""
        ...


@runtime_checkable
class SmoothLoss(Loss, Protocol):
    """A loss with second derivatives, which the greedy engine needs.

    Where the first derivative has kinks, as that of Huber's loss, any generalised second
    derivative will do.
    """

    #: The curvature does not depend on the scores.
    constant_curvature: ClassVar[bool]

    def curvature(self, residual: Array, target: Any, weight: Array) -> Any:
        """Return a diagonal model of the Hessian in the scores.

        Its shape is ``(n_samples, n_outputs)``, or ``(n_samples, 1)`` if all outputs share it.
        """
        ...

    def hessian_form(self, direction: Array, residual: Array, target: Any, weight: Array) -> float:
        """Return the second derivative of the weighted mean loss along ``direction``."""
        ...

    def column_hessian(self, column: Array, residual: Array, target: Any, weight: Array) -> Any:
        """Return the ``(n_outputs, n_outputs)`` Hessian in the weights of one column."""
        ...

    def max_norm_smoothness(self, n_outputs: int) -> float:
        """Return ``b`` in ``loss(u + v) <= loss(u) + <grad, v> + b max_r |v_r|^2``."""
        ...


@runtime_checkable
class DualLoss(Loss, Protocol):
    """A loss with a Fenchel conjugate, which the proximal and dual engines need.

    ``F`` is the weighted mean loss as a function of the scores (:eq:`conjugate-sum`). ``theta`` is
    a point of the dual space, of the shape of the scores. The residual at some scores is such a
    point, and there ``F(scores) + F*(theta) = <scores, theta>``. Zero lies in the domain of every
    conjugate.

    A scalar loss whose conjugate is a parabola with a kink, between bounds, may also have
    ``box_dual(target, weight)``, which returns a :class:`BoxDual`.

    A joint loss that is not smooth also has ``best_constant(target, weight)``. It returns the best
    scores that are the same for all samples, and the dual point there, which sums to zero in every
    output. For all other losses the engines compute them.
    """

    def conjugate(self, theta: Array, target: Any, weight: Array) -> float:
        """Return ``F*(theta) = sum_i w_i l*(theta_i / w_i)``; ``inf`` outside its domain.

        A point that leaves the domain by a few dozen rounding errors counts as inside. A row (or
        entry) of weight zero must be zero in ``theta``.
        """
        ...

    def prox_conjugate(self, theta: Array, step: Numbers, target: Any, weight: Array) -> Any:
        """Return the minimiser of ``F*(phi) + sum (phi - theta)**2 / (2 step)``.

        Losses with kinks are smoothed by it (:eq:`smoothed-loss`). ``step`` is a positive number or
        an array of them, one per sample, ``(n_samples, 1)``, or for scalar losses also one per
        entry. Rows of weight zero become zero.
        """
        ...

    def balance(self, theta: Array, target: Any, weight: Array) -> Any:
        """Return a point of the domain near ``theta`` that sums to zero in every output.

        The bound :eq:`lower-bound` holds for such points only if there is an intercept. A point of
        the domain whose sums are zero stays as it is. Any other point in or near the domain moves
        by about the size of its sums. The result is feasible for a free intercept.
        """
        ...
