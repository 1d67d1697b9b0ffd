"""Online mirror descent: learning from samples as they come, under the norms of the batch engines.

A learner holds ``theta``, minus the sum of the gradients so far, and plays the weights
``mirror(rate * theta)`` of a strongly convex norm, scaled into a ball if there is one
(:eq:`mirror-play`). For mixed norms of columns or entries this costs one pass over the entries of
the sample that are not zero (:class:`RowLearner`). For any other norm, such as the trace norm, the
weights are computed once for a block of samples (:class:`BlockLearner`). Both keep an account: the
losses so far, and the bounds that the theory gives.
"""

from __future__ import annotations

from mixnorm.engines.mirror.block_learner import BlockLearner
from mixnorm.engines.mirror.plan import Plan, are_compiled
from mixnorm.engines.mirror.row_learner import RowLearner
from mixnorm.norms import MixedNorm


def build(plan: Plan, n_features: int, n_outputs: int) -> RowLearner | BlockLearner:
    """Return the learner for a plan: by rows if the norm and the losses allow it."""
    norm = plan.smooth(n_features, n_outputs)
    by_rows = isinstance(norm, MixedNorm) and norm.groups is None and are_compiled(plan.losses)
    return (RowLearner if by_rows else BlockLearner)(plan, n_features, n_outputs)
