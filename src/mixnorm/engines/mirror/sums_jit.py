"""The compiled mirror maps of online mirror descent: weights from sums of gradients.

``theta`` is minus the sum of the gradients. For norms of entries, ``image`` has its powers, entry
by entry. Weights are a common number times ``theta`` times a factor for each column
(:eq:`mirror-columns`), or a common number times ``image``.
"""

from __future__ import annotations

import math

from mixnorm.engines.mirror import layout as at
from mixnorm.engines.mirror.vectors_jit import (
    climb,
    compiled,
    entry,
    fast_entry,
    put,
    raise_to,
    square_columns,
)

# Binary logarithms of squared norms, in units, beyond which the unit grows: in general, and divided
# by the power for large powers. Powers of norms must stay below 2**1024, with room for their sum.
_LARGEST_SQUARE_EXPONENT, _LARGEST_POWER_EXPONENT = 40.0, 900.0
# Sums of squares below this have lost digits in underflow.
_LEAST_SUM_OF_SQUARES = 1e-280


@compiled
def matrix_of(theta, image):  # type: ignore[no-untyped-def]
    """Return the matrix that weights are a multiple of: sums of gradients, or their image."""
    # numba compiles only the first line for norms of columns, as ``image`` has the type None there.
    if image is None:
        return theta
    return image


@fast_entry
def derive(  # type: ignore[no-untyped-def]
    count, index, codes, constants, theta, image, column, tree, levels, numbers, scratch
):
    """Compute what is derived from columns of ``theta``; from all columns without an index.

    Returns the largest squared norm, in units.
    """
    # All norms are in a unit of about the size of the sums: powers of large numbers would overflow,
    # and those of small ones vanish. The unit is a power of two, so that dividing by it is exact.
    power, n_outputs, unit = constants[at.POWER], codes[at.OUTPUTS], numbers[at.UNIT]
    size, powers = scratch[at.S_SIZE], scratch[at.S_POWER]
    held, other = scratch[at.S_HELD], scratch[at.S_OTHER]
    largest = 0.0
    if codes[at.KIND] == at.ENTRIES:
        if image is not None:
            largest = lift_entries(
                count, index, power, n_outputs, unit, theta, image, tree, scratch
            )
    else:
        largest = square_columns(count, index, n_outputs, unit, theta, size)
        if power != 2.0:
            # |theta_j|^(p - 2) from the squared norm, without a root.
            raise_to(size, 0.5 * power - 1.0, powers, held, other, count)
            put(count, index, powers, column[at.FACTOR])
        if codes[at.SIZED]:
            # times the square: the power of the norm that the tree sums.
            if power != 2.0:
                for e in range(count):
                    size[e] *= powers[e]
            put(count, index, size, tree)
    if codes[at.SIZED]:
        climb(tree, levels, index, count)
    return largest


@compiled
def lift_entries(count, index, power, n_outputs, unit, theta, image, tree, scratch):  # type: ignore[no-untyped-def]
    """Write the signed powers of entries, and the sum of powers of each column, in units.

    Returns the largest squared entry.
    """
    whole, largest, part = index.shape[0] == 0, 0.0, 1.0 / unit
    size, powers = scratch[at.S_SIZE], scratch[at.S_POWER]
    # The leaves of these columns are summed anew, output by output.
    for e in range(count):
        tree[e if whole else index[e]] = 0.0
    for r in range(n_outputs):
        row, own = theta[r], image[r]
        for e in range(count):
            size[e] = abs(row[e if whole else index[e]]) * part
            largest = max(largest, size[e])
        raise_to(size, power - 1.0, powers, scratch[at.S_HELD], scratch[at.S_OTHER], count)
        for e in range(count):
            j = e if whole else index[e]
            tree[j] += powers[e] * size[e]
            own[j] = math.copysign(powers[e], row[j])
    return largest * largest


@fast_entry
def note_average(count, index, codes, matrix, total, column, numbers):  # type: ignore[no-untyped-def]
    """Add weights of columns since their last change to the sums; of all without an index."""
    whole = index.shape[0] == 0
    seen, factor = column[at.SEEN], column[at.FACTOR]
    for e in range(count):
        j = e if whole else index[e]
        # Between two changes a column is a fixed vector times the common factor, whose sum over the
        # rounds the clock shows.
        passed = numbers[at.CLOCK] - seen[j]
        seen[j] = numbers[at.CLOCK]
        if codes[at.KIND] == at.COLUMNS:
            passed *= factor[j]
        for r in range(codes[at.OUTPUTS]):
            total[r, j] += passed * matrix[r, j]


@compiled
def count_average(weight, rate, scale, outputs, numbers):  # type: ignore[no-untyped-def]
    """Count a round in the sums of weights and of offsets."""
    for r in range(outputs.shape[1]):
        outputs[at.OFFSETS, r] += weight * rate * outputs[at.OFFSET, r]
    numbers[at.CLOCK] += weight * scale


@entry
def rate_now(codes, constants, numbers):  # type: ignore[no-untyped-def]
    """Return the step size of the next round (:eq:`adaptive-rate` for the adaptive rule)."""
    if codes[at.RULE] == at.ANYTIME:
        return constants[at.RATE] / math.sqrt(numbers[at.WEIGHT] + 1.0)
    if codes[at.RULE] == at.ADAPTIVE:
        seen = numbers[at.FIRST] + numbers[at.SQUARES]
        return constants[at.RATE] * math.sqrt(constants[at.CONVEXITY] / seen) if seen > 0.0 else 0.0
    return constants[at.RATE]


@entry
def scale_now(rate, codes, constants, tree, numbers):  # type: ignore[no-untyped-def]
    """Return the common factor of the weights (:eq:`mirror-columns`, and the ball's)."""
    # Perceptrons only need the weights up to a factor.
    if codes[at.RULE] == at.NONE:
        return 1.0
    if codes[at.SIZED] == 0 or not tree[-1] > 0.0:
        return rate
    power = constants[at.POWER]
    height = math.pow(tree[-1], 1.0 / power)  # the dual norm, in units
    scale = rate * math.pow(height, 2.0 - power)
    if codes[at.KIND] == at.ENTRIES:
        scale *= numbers[at.UNIT]
    # The mirror map keeps norms: that of the weights is the rate times the dual norm of the sums.
    size = rate * height * numbers[at.UNIT]
    return scale * (constants[at.RADIUS] / size) if size > constants[at.RADIUS] else scale


@compiled
def power_norm(vector, count, power, scratch):  # type: ignore[no-untyped-def]
    """Return the norm of the first ``count`` entries."""
    total = 0.0
    if power == 2.0:
        for e in range(count):
            total += vector[e] * vector[e]
        if total > _LEAST_SUM_OF_SQUARES:
            return math.sqrt(total)
    largest = 0.0
    for e in range(count):
        largest = max(largest, abs(vector[e]))
    if not largest > 0.0:
        return 0.0
    size, powers = scratch[at.S_SIZE], scratch[at.S_POWER]
    inverse = 1.0 / largest
    for e in range(count):
        size[e] = abs(vector[e]) * inverse
    total = 0.0
    raise_to(size, power, powers, scratch[at.S_HELD], scratch[at.S_OTHER], count)
    for e in range(count):
        total += powers[e]
    return largest * math.pow(total, 1.0 / power)


@compiled
def bound_norm(vector, count, power):  # type: ignore[no-untyped-def]
    """Return an upper bound of the norm of the first ``count`` entries, for a power of 2 or more.

    It interpolates between the largest entry and the Euclidean norm: the logarithms of norms are
    convex in the inverse of the power.
    """
    largest, total = 0.0, 0.0
    for e in range(count):
        largest = max(largest, abs(vector[e]))
    if not largest > 0.0:
        return 0.0
    inverse = 1.0 / largest
    for e in range(count):
        total += (vector[e] * inverse) * (vector[e] * inverse)
    return largest * math.pow(total, 1.0 / power)


@compiled
def add_outer(count, index, value, residual, codes, matrix):  # type: ignore[no-untyped-def]
    """Subtract ``residual x value`` from a matrix; without an index ``value`` is a whole sample."""
    for r in range(codes[at.OUTPUTS]):
        slope = residual[r]
        # Most outputs of a margin loss have no derivative.
        if slope != 0.0:
            row = matrix[r]
            if index.shape[0] == 0:
                for j in range(count):
                    row[j] -= slope * value[j]
            else:
                for e in range(count):
                    row[index[e]] -= slope * value[e]


@compiled
def step_sums(  # type: ignore[no-untyped-def]
    size, places, moved, rate, residual, products, codes, constants, theta, numbers, scratch
):
    """Subtract a gradient from the sums, and update the numbers of the account.

    Returns whether the size of the sums was unknown so far, and so their unit.
    """
    # The middle of :eq:`regret`: the product of gradient and weights is that of derivatives and
    # scores.
    power, n_outputs = constants[at.POWER], codes[at.OUTPUTS]
    for r in range(n_outputs):
        numbers[at.LINEAR] += residual[r] * products[r]
    # Perceptrons need the norm of the largest sample only. A bound that is quick to compute leaves
    # most of the others out.
    sample = numbers[at.LARGEST_SAMPLE]
    if codes[at.RULE] != at.NONE or not bound_norm(moved, size, power) <= sample:
        sample = power_norm(moved, size, power, scratch)
    # A gradient is an outer product, whose norm is the product of the norms of both parts.
    inside = power if codes[at.KIND] == at.ENTRIES else 2.0
    slope = power_norm(residual, n_outputs, inside, scratch) * sample
    numbers[at.LARGEST_SAMPLE] = max(numbers[at.LARGEST_SAMPLE], sample)
    numbers[at.LARGEST_GRADIENT] = max(numbers[at.LARGEST_GRADIENT], slope)
    if numbers[at.FIRST] == 0.0 and slope > 0.0:
        numbers[at.FIRST] = slope * slope
        # No weights have used the rate so far: it may depend on the first gradient.
        if codes[at.RULE] == at.ADAPTIVE:
            rate = rate_now(codes, constants, numbers)
    if slope > 0.0:
        numbers[at.LAST_RATE] = rate
    numbers[at.STEPS] += rate * slope * slope / (2.0 * constants[at.CONVEXITY])
    unknown = numbers[at.SQUARES] == 0.0
    numbers[at.SQUARES] += slope * slope
    add_outer(size, places, moved, residual, codes, theta)
    return unknown


@compiled
def is_outgrown(largest, power):  # type: ignore[no-untyped-def]
    """Tell whether squared norms, in units, have become too large for their unit."""
    return largest > math.pow(2.0, min(_LARGEST_SQUARE_EXPONENT, _LARGEST_POWER_EXPONENT / power))
