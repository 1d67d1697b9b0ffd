"""The compiled loop for one dense row at a time: learn from it, or score it.

It has its own functions because making arrays around a row in Python takes longer than many a row.
"""

from __future__ import annotations

import math

from mixnorm.engines.mirror import layout as at
from mixnorm.engines.mirror.origin_jit import measure
from mixnorm.engines.mirror.rows_jit import learn, score
from mixnorm.engines.mirror.sums_jit import rate_now, scale_now
from mixnorm.engines.mirror.vectors_jit import entry, fast_entry, shift


@entry
def learn_row(  # type: ignore[no-untyped-def]
    x, mode, label, joint, target, codes, constants, loss_codes, loss_constants, theta, image,
    by_feature, by_name, total, column, outputs, tree, levels, numbers, index, scratch,
):  # fmt: skip
    """Learn from one dense sample; return the rounds so far.

    The result is -1 if the sample is not finite, and -2 if the losses no longer are. It is -3 if
    rare work has to be done before the next call with the same sample.
    """
    codes[at.MODE] = mode
    # Parts of the arrays to work in: making six arrays would take longer than many a row.
    place, single = index[at.I_PLACE], scratch[at.S_SINGLE]
    place[at.LABEL], single[0] = label, 1.0
    done = learn(
        x.reshape((1, x.shape[0])), place[:0], place[:0], single[:0], place[at.LABEL :], joint,
        target, single[:1], codes, constants, loss_codes, loss_constants, theta, image, by_feature,
        by_name, total, column, outputs, tree, levels, numbers, index, scratch, single[1:],
        place[at.MISSED :],
    )  # fmt: skip
    if place[at.EVENT] != 0:
        return -3
    place[at.SAMPLE], place[at.TURN] = 0, 0
    if done < 1:
        return -1
    return int(numbers[at.ROUNDS]) if math.isfinite(numbers[at.LOSS]) else -2


@fast_entry
def scores_of(  # type: ignore[no-untyped-def]
    dense, codes, constants, theta, matrix, column, outputs, tree, numbers, index, scratch, scores
):
    """Write the scores of a dense sample, as the next round would compute them."""
    n_columns, everything = column.shape[1], index[at.I_ENTRIES, :0]
    raw, value = scratch[at.S_RAW], scratch[at.S_VALUE]
    shift(dense, raw)
    if codes[at.INTERCEPT]:
        raw[0] = 1.0
    rate = rate_now(codes, constants, numbers)
    scale = 1.0
    if theta is not None:
        scale = scale_now(rate, codes, constants, tree, numbers)
    measure(n_columns, everything, column, raw, value)
    score(
        n_columns, everything, scale, -1, codes, constants, theta, matrix, column, value,
        scratch[at.S_PART], scores,
    )  # fmt: skip
    for r in range(codes[at.OUTPUTS]):
        scores[r] += rate * outputs[at.OFFSET, r] + outputs[at.BASE, r]
