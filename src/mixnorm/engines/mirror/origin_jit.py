"""The running means and units by which inputs are measured, compiled (:eq:`running-inputs`).

The unit of a column is the largest distance from its origin so far. When means move, the intercept
moves with them, so that the model stays the same function (:eq:`moving-intercept`).
"""

from __future__ import annotations

import math

from mixnorm.engines.mirror import layout as at
from mixnorm.engines.mirror.sums_jit import derive, matrix_of, note_average
from mixnorm.engines.mirror.vectors_jit import compiled, move_means

# Compiled code reads these as constants. As fields of an object they would be further arguments of
# every function.
# Largest factor by which a weight grows with the unit of its column: a value much farther out than
# all before says that neither the unit nor the weight was known.
_LARGEST_STRETCH = 1.5
# Share of the samples so far that counts as a short time since the unit last grew.
_RECENT_SHARE = 0.1
# Least share of samples with a name whose absence means unknown, rather than zero.
_USUAL_SHARE = 0.5
# Weight of the samples from which on names are counted as usual or rare.
_ROWS_TO_COUNT_NAMES = 10.0


@compiled
def measure(size, index, column, raw, value):  # type: ignore[no-untyped-def]
    """Write inputs: distances from the origin in units; of all columns without an index."""
    mean, inverse = column[at.MEAN], column[at.INVERSE]
    if index.shape[0] == 0:
        for j in range(size):
            value[j] = (raw[j] - mean[j]) * inverse[j]
    else:
        for e in range(size):
            value[e] = (raw[e] - mean[index[e]]) * inverse[index[e]]


@compiled
def grow(j, size, limit, codes, theta, image, total, by_feature, column, numbers):  # type: ignore[no-untyped-def]
    """Give a column a larger unit.

    Sums of gradients become what they would have been with inputs in the new unit. Weights become
    those of the same function, but grow at most by the factor ``limit``: a value very far out shows
    that the unit was not known, and neither was the weight. Weights stay as they are if the unit
    grew a short time ago, because the weight of a column that keeps growing would grow with it.

    The caller adds up before what was played in the old unit (``note_average``), and derives
    afterwards what depends on the sums (``derive``).
    """
    top = column[at.TOP, j]
    column[at.TOP, j], column[at.INVERSE, j] = size, 1.0 / size
    # The first unit: nothing was learned in an earlier one, as all inputs were zero.
    if not top > 0.0:
        column[at.GREW, j] = numbers[at.WEIGHT]
        return
    part = top / size
    # Steps by feature: weights are stored themselves. numba compiles only one of the two branches,
    # as ``by_feature`` or ``theta`` has the type None.
    if by_feature is not None:
        column[at.ENERGY, j] *= part * part
        recent = numbers[at.WEIGHT] - column[at.GREW, j] < _RECENT_SHARE * numbers[at.WEIGHT]
        stretch = 1.0 if recent and limit < math.inf else min(size / top, limit)
        column[at.GREW, j] = numbers[at.WEIGHT]
        for r in range(codes[at.OUTPUTS]):
            image[r, j] *= stretch
            if codes[at.AVERAGED]:
                total[r, j] *= stretch
    # Sums of gradients: each input was larger by one over ``part`` in the old unit.
    if theta is not None:
        for r in range(codes[at.OUTPUTS]):
            theta[r, j] *= part


@compiled
def add_offset(j, moved, scale, codes, matrix, column, outputs):  # type: ignore[no-untyped-def]
    """Let intercepts follow the mean of a column, which has moved by ``moved``."""
    # One term of :eq:`moving-intercept`.
    part = scale * moved * column[at.INVERSE, j]
    if codes[at.KIND] == at.COLUMNS:
        part *= column[at.FACTOR, j]
    for r in range(codes[at.OUTPUTS]):
        outputs[at.OFFSET, r] += part * matrix[r, j]


@compiled
def find_grown(size, places, column, raw, grown):  # type: ignore[no-untyped-def]
    """Write the columns with a unit that a sample lies beyond; return their number."""
    count = 0
    for e in range(size):
        j = e if places.shape[0] == 0 else places[e]
        top = column[at.TOP, j]
        grown[count] = j
        count += top > 0.0 and abs(raw[e] - column[at.MEAN, j]) > top
    return count


@compiled
def let_grow(  # type: ignore[no-untyped-def]
    size, places, scale, gain, codes, theta, image, total, by_feature, column, outputs, numbers,
    scratch,
):  # fmt: skip
    """Let units grow for values of a sample beyond them, and measure these values again.

    Such a value does not move the intercept by the old weight of its column. Weights of steps by
    feature shrink around the mean before the sample, not around the moved one. Returns the change
    of the magnitudes of the inputs.
    """
    raw, value, change = scratch[at.S_RAW], scratch[at.S_VALUE], 0.0
    matrix = matrix_of(theta, image)
    for e in range(size):
        j = e if places.shape[0] == 0 else places[e]
        away = raw[e] - column[at.MEAN, j]
        if not abs(away) > column[at.TOP, j]:
            continue
        # How far the mean has moved for this sample. From the distance after the move, which is
        # what is left of the one before: (1 - share) of it.
        moved = 0.0
        if codes[at.ORIGIN] == at.MEANS or column[at.MARK, j] > 0.0:
            share = (
                gain
                if codes[at.ORIGIN] == at.MEANS
                else gain * numbers[at.WEIGHT] / column[at.KNOWN, j]
            )
            moved = away * share / (1.0 - share)
        # Takes back what ``move_origin`` added to the intercepts for this column.
        add_offset(j, -moved, scale, codes, matrix, column, outputs)
        grow(
            j, abs(away), _LARGEST_STRETCH, codes, theta, image, total, by_feature, column, numbers
        )  # fmt: skip
        if codes[at.KIND] == at.FEATURES:
            add_offset(j, moved, scale, codes, matrix, column, outputs)
        change -= abs(value[e])
        value[e] = away * column[at.INVERSE, j]
        change += abs(value[e])
    return change


@compiled
def move_origin(  # type: ignore[no-untyped-def]
    size, places, scale, safe_rate, gain, codes, matrix, column, outputs, numbers, scratch, products
):
    """Update means with a sample, and measure the sample again.

    ``gain`` is the share of the sample in the means, ``safe_rate`` the rate. Returns the sum of the
    inputs' magnitudes, and the number of inputs beyond their units.
    """
    raw, value = scratch[at.S_RAW], scratch[at.S_VALUE]
    if codes[at.ORIGIN] == at.MEANS:
        # The sum over all columns is the score that the features made, which is known already. What
        # the column of ones added to it is taken off: it has no mean.
        own = 0.0
        for r in range(codes[at.OUTPUTS]):  # all means move by the same share of the inputs
            if codes[at.INTERCEPT]:
                own = (
                    scale
                    * matrix[r, 0]
                    * (column[at.FACTOR, 0] if codes[at.KIND] == at.COLUMNS else 1.0)
                )
            outputs[at.OFFSET, r] += gain * (products[r] - own) / safe_rate
        return move_means(gain, raw, column[at.MEAN], column[at.INVERSE], column[at.TOP], value)
    if codes[at.ORIGIN] == at.MARKED:
        # Marked columns have their own weight of known values, and so each its own gain.
        weight = gain * numbers[at.WEIGHT]
        for e in range(size):
            j = places[e]
            if column[at.MARK, j] > 0.0:
                column[at.KNOWN, j] += weight
                moved = weight / column[at.KNOWN, j] * (raw[e] - column[at.MEAN, j])
                column[at.MEAN, j] += moved
                add_offset(j, moved, scale / safe_rate, codes, matrix, column, outputs)
    measure(size, places, column, raw, value)
    # Units are compared with distances from the new means, from which they are measured.
    inputs, far = 0.0, 0
    for e in range(size):
        j = e if places.shape[0] == 0 else places[e]
        inputs += abs(value[e])
        far += abs(raw[e] - column[at.MEAN, j]) > column[at.TOP, j]
    return inputs, far


@compiled
def note_names(  # type: ignore[no-untyped-def]
    places, weight, scale, codes, constants, theta, image, total, by_feature, column, outputs, tree,
    levels, numbers, scratch, grown,
):  # fmt: skip
    """Count the marked columns that a sample has, and remove the marks of rare columns.

    From then on their origin is zero, and their unit reaches to zero. The model stays the same
    function of samples that have these columns.
    """
    matrix = matrix_of(theta, image)
    for e in range(places.shape[0]):
        j = places[e] + 1  # behind the intercept
        if column[at.MARK, j] > 0.0:
            seen = numbers[at.WEIGHT]
            if seen > _ROWS_TO_COUNT_NAMES and column[at.PRESENT, j] < _USUAL_SHARE * seen:
                top, mean = column[at.TOP, j], column[at.MEAN, j]
                # Numbers of columns are variables: for a literal one numba compiles the functions
                # once more.
                grown[0], count = j, int(top > 0.0)
                if codes[at.AVERAGED]:
                    note_average(count, grown, codes, matrix, total, column, numbers)
                # Without a limit: weights must keep the function, as nothing far out was seen here.
                if count > 0:
                    grow(
                        j, top + abs(mean), math.inf, codes, theta, image, total, by_feature,
                        column, numbers,
                    )  # fmt: skip
                if theta is not None:
                    derive(
                        count, grown, codes, constants, theta, image, column, tree, levels, numbers,
                        scratch,
                    )  # fmt: skip
                add_offset(j, -mean, scale, codes, matrix, column, outputs)
                column[at.MARK, j], column[at.MEAN, j] = 0.0, 0.0
            column[at.PRESENT, j] += weight
