"""The seam between engines and losses."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from mixnorm._array import Array


@runtime_checkable
class Loss(Protocol):
    """What every engine asks of a loss.

    Scores, residuals and curvatures have shape ``(n_samples, n_outputs)``; ``weight`` has shape
    ``(n_samples,)`` and sums to one, so that every value is a weighted mean over samples. All
    arrays are of one namespace, dtype and device.

    A loss on labels is joint: a sample's scores make one loss. Any other loss is scalar: it is
    taken score by score and summed over the outputs, its constants are those of one output, and
    its ``weight`` may also have shape ``(n_samples, n_outputs)``.

    A loss may also declare ``degree``, ``scaled_parameter``, ``row_code`` and ``row_constants``, as
    those of this package do; without them it is taken for one that has none of these.
    """

    #: Adding one constant to all scores of a sample leaves the loss unchanged.
    shift_invariant: ClassVar[bool]
    #: Targets are class labels (encoded as 0 .. k-1) rather than numbers.
    is_classifier: ClassVar[bool]
    #: Targets are -1 and +1, for each output by itself.
    is_binary: ClassVar[bool]

    @property
    def smoothness(self) -> float:
        """Largest eigenvalue of the Hessian in the scores of one sample; ``inf`` where none is.

        For the soft-max losses this is Böhning's factor.
        """
        ...

    @property
    def lipschitz(self) -> float:
        """Lipschitz constant in the Euclidean norm of a sample's scores; ``inf`` where none is."""
        ...

    def encode(self, y: Array, n_outputs: int, like: Array) -> Any:
        """Prepare the targets once, in the namespace, dtype and device of ``like``."""
        ...

    def value_and_residual(self, scores: Array, target: Any, weight: Array) -> tuple[float, Any]:
        """Return the weighted mean loss and its derivative in the scores.

        Where there is no derivative, any subgradient is returned.
        """
        ...

    def proba(self, scores: Array) -> Any:
        """Return class probabilities, or raise TypeError where the loss knows none."""
        ...

    def predict(self, scores: Array) -> Any:
        """Return class indices, signs for targets -1 and +1, or the scores for a regression."""
        ...


@runtime_checkable
class SmoothLoss(Loss, Protocol):
    """A loss with second derivatives, which the greedy engine asks for.

    Where the first derivative has kinks, as Huber's has, any generalised second derivative does.
    """

    #: The curvature does not depend on the scores.
    constant_curvature: ClassVar[bool]

    def curvature(self, residual: Array, target: Any, weight: Array) -> Any:
        """Return a diagonal model of the Hessian in the scores.

        Shape ``(n_samples, n_outputs)``, or ``(n_samples, 1)`` where all outputs share it.
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
    """A loss with a Fenchel conjugate, which the proximal engine asks for.

    ``F`` is the weighted mean loss as a function of the scores, and ``theta``, which has their
    shape, a point of the dual space. The residual at some scores is such a point, and there
    ``F(scores) + F*(theta) = <scores, theta>``. Zero lies in the domain of every conjugate.

    A scalar loss whose conjugate is a parabola with a kink, between bounds, may also have
    ``box_dual(target, weight)``, which returns a :class:`BoxDual`.

    A joint loss that is not smooth also has ``best_constant(target, weight)``: the best scores
    that are the same for all samples, and the dual point there, which sums to zero in every
    output. For all others engines find them.
    """

    def conjugate(self, theta: Array, target: Any, weight: Array) -> float:
        """Return ``F*(theta) = sum_i w_i l*(theta_i / w_i)``; ``inf`` outside its domain.

        What leaves the domain by a few dozen rounding errors counts as inside. A row (or entry)
        of weight zero must be zero in ``theta``.
        """
        ...

    def prox_conjugate(self, theta: Array, step: Any, target: Any, weight: Array) -> Any:
        """Return the minimiser of ``F*(phi) + sum (phi - theta)**2 / (2 step)``.

        ``step`` is a positive number or an array of them, one per sample, ``(n_samples, 1)``, or
        for scalar losses also one per entry. Rows of weight zero come out as zero.
        """
        ...

    def balance(self, theta: Array, target: Any, weight: Array) -> Any:
        """Return a point of the domain near ``theta`` that sums to zero in every output.

        A point that already does comes back as it is; any other in or near the domain moves by
        about the size of its sums. This makes ``theta`` feasible for a free intercept.
        """
        ...
