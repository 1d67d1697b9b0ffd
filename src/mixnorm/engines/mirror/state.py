"""The state of an online learner, as a value that files and pickles keep."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mixnorm.engines.mirror import layout
from mixnorm.engines.mirror.block_learner import BlockLearner
from mixnorm.engines.mirror.plan import Plan
from mixnorm.engines.mirror.row_learner import RowLearner

# Up to this number floats count exactly: adding one to a larger one may change nothing.
_LARGEST_EXACT_COUNT = 2.0**53


@dataclass(frozen=True, eq=False)
class LearnerState:
    """The state from which a learner continues. The learner changes the arrays in place.

    Parameters
    ----------
    plan : Plan
        The plan of the learner.
    kind : {"rows", "blocks"}
        Whether it is a :class:`RowLearner` or a :class:`BlockLearner`.
    n_features, n_outputs : int
        The shape of its weights.
    arrays : dict of str to ndarray
        Its arrays by name: those listed in ``stored`` of its class.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.engines.mirror import PERCEPTRON, build
    >>> from mixnorm.norms import MixedNorm
    >>> learner = build(Plan(MixedNorm(2, 1), [PERCEPTRON], rule="none"), 3, 2)
    >>> state = LearnerState.of(learner)
    >>> _ = learner.learn(np.eye(3), np.array([0, 1, 1]), np.empty((3, 0)), np.ones(3))
    >>> state.learner is learner, state.kind, state.arrays["theta"].shape
    (True, 'rows', (2, 4))
    """

    plan: Plan
    kind: Literal["rows", "blocks"]
    n_features: int
    n_outputs: int
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, learner: RowLearner | BlockLearner) -> LearnerState:
        """Return the state of a learner; both share the arrays."""
        arrays = {name: getattr(learner, name) for name in learner.stored}
        kind: Literal["rows", "blocks"] = "rows" if isinstance(learner, RowLearner) else "blocks"
        made = cls(learner.plan, kind, learner.n_features, learner.n_outputs, arrays)
        # Fills the cached property of a frozen value: the learner that exists is used again.
        object.__setattr__(made, "learner", learner)
        return made

    @cached_property
    def learner(self) -> RowLearner | BlockLearner:
        """The learner that works on these arrays."""
        made = self._empty()
        for name, array in self.arrays.items():
            setattr(made, name, array)
        return made

    def _empty(self) -> RowLearner | BlockLearner:
        """Return a learner of this kind that has learned nothing."""
        kind = RowLearner if self.kind == "rows" else BlockLearner
        return kind(self.plan, self.n_features, self.n_outputs)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only; the learner is made again when it is needed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self, max_bytes: int) -> None:
        """Raise ValueError unless a learner can continue from here; the state may be a file's."""
        sizes = (self.n_features, self.n_outputs)
        if [type(size) for size in sizes] != [int, int] or min(sizes) < 0 or self.n_outputs < 1:
            raise ValueError("the sizes of the learner must be whole numbers")
        if 8 * (self.n_features + 1) * self.n_outputs > max_bytes:
            raise ValueError(f"the weights of the learner take more than {max_bytes} bytes")
        # Before anything is allocated: a file of a few bytes could name sizes of many gigabytes.
        # Bounds the size of the empty learner below by what the file holds.
        if max((array.size for array in self.arrays.values()), default=0) < math.prod(sizes):
            raise ValueError("the sizes of the learner must be those of its weights")
        self.plan.check(self.n_outputs)
        wanted = self._empty()
        if self.arrays.keys() != set(wanted.stored):
            raise ValueError(f"the learner must have the arrays {sorted(wanted.stored)}")
        # Compiled loops do not check bounds: with another shape they would read and write
        # elsewhere.
        for name, array in self.arrays.items():
            like = getattr(wanted, name)
            same = array.dtype == like.dtype and array.shape == like.shape
            if not same or not array.flags.c_contiguous or not np.all(np.isfinite(array)):
                raise ValueError(f"the array {name} of the learner does not fit the rest")
        counts = self.arrays["numbers"][[layout.ROUNDS, layout.MISTAKES, layout.UPDATES]]
        if np.any((counts < 0.0) | (counts > _LARGEST_EXACT_COUNT)):
            raise ValueError("the rounds of the learner must be whole numbers")
        if self.kind == "blocks" and not 0 <= int(self.arrays["waiting"][0]) < self.plan.block:
            raise ValueError("more samples wait than one block has")
