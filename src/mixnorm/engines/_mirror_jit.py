"""The compiled loop of online mirror descent: predict, suffer, step, a sample at a time.

Matrices have a row per output and a column per column of the data; column 0 is the intercept's. All
of a learner's state lies in the arrays that the loop is given, so that it goes on exactly where it
stopped, however the samples were handed over. A sample with few entries is worked on entry by
entry, any other as a whole row, which compilers turn into wide instructions.

A round has this order. The sample is measured by the means and units known so far, and predicted.
Then means and units learn from it. The score of an output is ``weights . inputs + OFFSET + BASE``:
when means move, ``OFFSET`` moves with them, so that the model stays the same function. At last
comes the step, with inputs in the new units.
"""

from __future__ import annotations

import math

import numpy as np

from mixnorm.engines._vectors_jit import (
    climb,
    compiled,
    count_entries,
    entry,
    fast_entry,
    move_means,
    pack,
    pack_stored,
    pack_whole,
    plain,
    put,
    raise_to,
    scale_by,
    shift,
    spread,
    square_columns,
)
from mixnorm.losses._row_jit import HINGE, best_class, label_loss, number_loss

_LARGE = 40.0  # binary logarithm of squared norms in their unit; larger ones get a larger unit
_RANGE = 900.0  # of their powers, which are to stay within floating numbers
_LONG = 65536.0  # rounds of the present scale on the clock; a longer one would drop digits
_SPARSE = 8  # a sample is sparse if fewer than one in so many entries are not zero
_LIGHT = 3  # steps go by entries if fewer than one in so many are not zero
WARM = 30.0  # samples after which steps have half their size, as units are not known before
_STRETCH = 1.5  # a weight grows with the unit of its column at most so much at once
_REPEATS = 64.0  # steps of one sample at most, however large its weight
_ONE, _TINY = np.float32(1.0), np.float32(1e-30)
_USUAL = 0.9  # share of the samples that have a name whose absence says nothing

# How weights come from sums of gradients: by columns, by entries, or by steps of each column's own.
COLUMNS, ENTRIES, FEATURES = 0, 1, 2
# Step sizes.
NONE, FIXED, ANYTIME, ADAPTIVE = 0, 1, 2, 3
# What a sample brings.
LABELS, TASKS, TARGETS = 0, 1, 2

# What inputs are measured from: zero, the mean of each column, or that of columns marked so, whose
# absence then says that the value is not known.
ZERO, MEANS, MARKED = 0, 1, 2

# Places of ``codes``.
KIND, RULE, MODE, SCALED, INTERCEPT, AVERAGED, SIZED, OUTPUTS, ORIGIN = range(9)
N_CODES = 9
# Places of ``constants``.
POWER, RATE, RADIUS, CONVEXITY, QUIET = range(5)
# Places of ``numbers``.
(
    ROUNDS,
    MISTAKES,
    LOSS,
    CLOCK,
    STEPS,
    SQUARES,
    FIRST,
    UNIT,
    LARGEST_GRADIENT,
    LARGEST_SAMPLE,
    LAST_RATE,
    INPUTS,
    UPDATES,
    LINEAR,
    WEIGHT,
) = range(15)
N_NUMBERS = 16
# Rows of ``column``: the largest distance from the origin (the unit) and its inverse, the factor
# that turns sums of gradients into weights, the clock when last averaged, the sum of squared
# gradients, the mean, whether it is the origin, and the weight of samples that had a value, and
# that spoke of the column at all.
TOP, INVERSE, FACTOR, SEEN, ENERGY, MEAN, MARK, KNOWN, PRESENT = range(9)
N_COLUMN = 9
# Rows of ``outputs``: the largest derivative and target, whether there was one, the weight of
# targets seen, their mean,
# what moving means have added to the intercept, and the sum of that over the rounds.
STEEPEST, FARTHEST, SEEN_BEFORE, HEARD, BASE, OFFSET, OFFSETS = range(7)
N_OUTPUTS = 7
# Rows of the scratch space.
_PART, _SIZE, _POWER, _HELD, _OTHER, _RAW, _VALUE, _PACKED = range(8)
N_SCRATCH = 8


@compiled
def matrix_of(codes, theta, image):  # type: ignore[no-untyped-def]
    """Return what weights are a multiple of: by columns the sums of gradients, else their image.

    Steps of each column's own have no sums: ``theta`` is None there, and all that has to do with
    sums is not even compiled.
    """
    if theta is None:
        return image
    return theta if codes[KIND] == COLUMNS else image


@compiled
def derive(  # type: ignore[no-untyped-def]
    count, index, codes, constants, theta, image, column, tree, levels, numbers, scratch
):
    """Compute anew what is derived from columns of ``theta``; of all columns without an index.

    Returns the largest squared norm, in units.
    """
    power, n_outputs, unit = constants[POWER], codes[OUTPUTS], numbers[UNIT]
    size, powers = scratch[_SIZE], scratch[_POWER]
    held, other = scratch[_HELD], scratch[_OTHER]
    if codes[KIND] == ENTRIES:
        largest = lift_entries(count, index, power, n_outputs, unit, theta, image, tree, scratch)
    else:
        largest = square_columns(count, index, n_outputs, unit, theta, size)
        if power != 2.0:
            raise_to(size, 0.5 * power - 1.0, powers, held, other, count)
            put(count, index, powers, column[FACTOR])
        if codes[SIZED]:
            if power != 2.0:
                for e in range(count):
                    size[e] *= powers[e]
            put(count, index, size, tree)
    if codes[SIZED]:
        climb(tree, levels, index, count)
    return largest


@compiled
def lift_entries(count, index, power, n_outputs, unit, theta, image, tree, scratch):  # type: ignore[no-untyped-def]
    """Write the powers of entries with their signs, and each column's sum of them, in units.

    Returns the largest squared entry.
    """
    whole, largest, part = index.shape[0] == 0, 0.0, 1.0 / unit
    size, powers = scratch[_SIZE], scratch[_POWER]
    for e in range(count):
        tree[e if whole else index[e]] = 0.0
    for r in range(n_outputs):
        row, own = theta[r], image[r]
        for e in range(count):
            size[e] = abs(row[e if whole else index[e]]) * part
            largest = max(largest, size[e])
        raise_to(size, power - 1.0, powers, scratch[_HELD], scratch[_OTHER], count)
        for e in range(count):
            j = e if whole else index[e]
            tree[j] += powers[e] * size[e]
            own[j] = math.copysign(powers[e], row[j])
    return largest * largest


@fast_entry
def note_average(count, index, codes, theta, image, total, column, numbers):  # type: ignore[no-untyped-def]
    """Add to the sum of weights what columns were since they last changed; all without an index."""
    whole = index.shape[0] == 0
    seen, factor, matrix = column[SEEN], column[FACTOR], matrix_of(codes, theta, image)
    for e in range(count):
        j = e if whole else index[e]
        passed = numbers[CLOCK] - seen[j]
        seen[j] = numbers[CLOCK]
        if codes[KIND] == COLUMNS:
            passed *= factor[j]
        for r in range(codes[OUTPUTS]):
            total[r, j] += passed * matrix[r, j]


@fast_entry
def refresh(  # type: ignore[no-untyped-def]
    codes, constants, theta, image, total, column, tree, levels, numbers, scratch
):
    """Compute anew all that is derived from ``theta``, in a unit that suits its size."""
    everything, n_columns = np.empty(0, np.int64), theta.shape[1]
    if codes[AVERAGED]:
        note_average(n_columns, everything, codes, theta, image, total, column, numbers)
    largest = 0.0
    for r in range(codes[OUTPUTS]):
        for j in range(n_columns):
            largest = max(largest, abs(theta[r, j]))
    if largest > 0.0 and math.isfinite(largest):
        unit = numbers[UNIT]  # the new one has a square and an inverse
        numbers[UNIT] = 2.0 ** max(-500.0, math.ceil(math.log2(largest)))
        if codes[AVERAGED] and codes[RULE] == NONE:  # weights are in powers of the unit
            lift = constants[POWER] - (1.0 if codes[KIND] == ENTRIES else 2.0)
            part = math.pow(unit / numbers[UNIT], lift)
            for r in range(codes[OUTPUTS]):
                for j in range(n_columns):
                    if total[r, j] != 0.0:  # the first part may be infinite
                        total[r, j] *= part
    derive(
        n_columns, everything, codes, constants, theta, image, column, tree, levels, numbers,
        scratch,
    )  # fmt: skip


@entry
def rate_now(codes, constants, numbers):  # type: ignore[no-untyped-def]
    """Return the step size of the coming round."""
    if codes[RULE] == ANYTIME:
        return constants[RATE] / math.sqrt(numbers[WEIGHT] + 1.0)
    if codes[RULE] == ADAPTIVE:
        seen = numbers[FIRST] + numbers[SQUARES]
        return constants[RATE] * math.sqrt(constants[CONVEXITY] / seen) if seen > 0.0 else 0.0
    return constants[RATE]


@entry
def scale_now(rate, codes, constants, tree, numbers):  # type: ignore[no-untyped-def]
    """Return what ``factor * theta``, or ``image``, is to be multiplied by to give the weights."""
    if codes[KIND] == FEATURES or codes[RULE] == NONE:
        return 1.0
    if codes[SIZED] == 0 or not tree[-1] > 0.0:
        return rate
    power = constants[POWER]
    height = math.pow(tree[-1], 1.0 / power)  # the dual norm, in units
    scale = rate * math.pow(height, 2.0 - power)
    if codes[KIND] == ENTRIES:
        scale *= numbers[UNIT]
    size = rate * height * numbers[UNIT]
    return scale * (constants[RADIUS] / size) if size > constants[RADIUS] else scale


@compiled
def grow(  # type: ignore[no-untyped-def]
    j, size, codes, constants, theta, image, total, column, tree, levels, numbers, scratch
):
    """Let a column have a larger unit.

    Sums of gradients are made what they would have been with inputs in the new unit. Weights are
    made those of the same function, unless the unit more than grows by half: a value so far out
    says that the unit was not known, and its weight neither.
    """
    top = column[TOP, j]
    column[TOP, j], column[INVERSE, j] = size, 1.0 / size
    if not top > 0.0:
        return
    part, place = top / size, np.empty(1, np.int64)
    place[0] = j
    if codes[AVERAGED]:
        note_average(1, place, codes, theta, image, total, column, numbers)
    if theta is None:
        column[ENERGY, j] *= part * part
        stretch = min(size / top, _STRETCH)
        for r in range(codes[OUTPUTS]):
            image[r, j] *= stretch
            if codes[AVERAGED]:
                total[r, j] *= stretch
        return
    for r in range(codes[OUTPUTS]):
        theta[r, j] *= part
    derive(1, place, codes, constants, theta, image, column, tree, levels, numbers, scratch)


@compiled
def whole_scores(count, part, scale, output, codes, matrix, scores):  # type: ignore[no-untyped-def]
    """Write the products of rows of a matrix with a whole sample, four rows at a time."""
    first, last = (0, codes[OUTPUTS]) if output < 0 else (output, output + 1)
    r = first
    while r + 4 <= last:
        a, b, c, d = matrix[r], matrix[r + 1], matrix[r + 2], matrix[r + 3]
        p, q, s, t = 0.0, 0.0, 0.0, 0.0
        for j in range(count):
            x = part[j]
            p += a[j] * x
            q += b[j] * x
            s += c[j] * x
            t += d[j] * x
        scores[r], scores[r + 1] = scale * p, scale * q
        scores[r + 2], scores[r + 3] = scale * s, scale * t
        r += 4
    while r < last:
        a, p = matrix[r], 0.0
        for j in range(count):
            p += a[j] * part[j]
        scores[r] = scale * p
        r += 1


@compiled
def entry_scores(count, index, part, scale, output, codes, matrix, scores):  # type: ignore[no-untyped-def]
    """Write the products of rows of a matrix with the entries of a sample."""
    first, last = (0, codes[OUTPUTS]) if output < 0 else (output, output + 1)
    for r in range(first, last):
        row, total = matrix[r], 0.0
        for e in range(count):
            total += row[index[e]] * part[e]
        scores[r] = scale * total


@compiled
def power_norm(vector, count, power, scratch):  # type: ignore[no-untyped-def]
    """Return the norm of the first ``count`` entries."""
    total = 0.0
    if power == 2.0:
        for e in range(count):
            total += vector[e] * vector[e]
        return math.sqrt(total)
    largest = 0.0
    for e in range(count):
        largest = max(largest, abs(vector[e]))
    if not largest > 0.0:
        return 0.0
    size, powers = scratch[_SIZE], scratch[_POWER]
    inverse = 1.0 / largest
    for e in range(count):
        size[e] = abs(vector[e]) * inverse
    raise_to(size, power, powers, scratch[_HELD], scratch[_OTHER], count)
    for e in range(count):
        total += powers[e]
    return largest * math.pow(total, 1.0 / power)


@compiled
def add_outer(count, index, value, residual, codes, matrix):  # type: ignore[no-untyped-def]
    """Take ``residual x value`` off a matrix; ``value`` is a whole sample without an index."""
    for r in range(codes[OUTPUTS]):
        slope = residual[r]
        if slope != 0.0:
            row = matrix[r]
            if index.shape[0] == 0:
                for j in range(count):
                    row[j] -= slope * value[j]
            else:
                for e in range(count):
                    row[index[e]] -= slope * value[e]


@compiled
def step_features(  # type: ignore[no-untyped-def]
    count, index, value, residual, weight, rate, codes, image, column, outputs, scratch
):
    """Take a step whose size is each column's own.

    Derivatives are taken in units of the largest seen of their output, and steps in units of its
    largest target.
    """
    energy, part = column[ENERGY], scratch[_PART]
    strength = 0.0
    for r in range(codes[OUTPUTS]):
        residual[r] /= outputs[STEEPEST, r]
        strength += residual[r] * residual[r]
        residual[r] *= weight * outputs[FARTHEST, r]
    strength *= weight / codes[OUTPUTS]
    if index.shape[0] > 0:
        for e in range(count):
            j = index[e]
            energy[j] += strength * value[e] * value[e]
            part[e] = rate * value[e] / math.sqrt(energy[j] + 1e-300)
    else:
        for j in range(count):
            energy[j] += strength * value[j] * value[j]
        if codes[SCALED]:  # half the digits are enough, and there half as dear
            for j in range(count):
                root = np.sqrt(np.float32(energy[j]) + _TINY)
                part[j] = rate * value[j] * np.float64(_ONE / root)
        else:
            for j in range(count):
                part[j] = rate * value[j] / math.sqrt(energy[j] + 1e-300)
    add_outer(count, index, part, residual, codes, image)


@plain
def move_base(i, output, weight, codes, loss_codes, residual, targets, outputs):  # type: ignore[no-untyped-def]
    """Move the means of targets that are numbers; the first of an output brings nothing else."""
    for r in range(codes[OUTPUTS]):
        target = targets[i, 0 if output >= 0 else r]
        if loss_codes[r] < HINGE and (output < 0 or r == output) and not math.isnan(target):
            if outputs[HEARD, r] == 0.0:
                residual[r] = 0.0
            outputs[HEARD, r] += weight
            outputs[BASE, r] += weight / outputs[HEARD, r] * (target - outputs[BASE, r])


@plain
def widen(i, output, codes, loss_codes, residual, targets, outputs):  # type: ignore[no-untyped-def]
    """Note the largest derivatives and targets of outputs that are numbers."""
    for r in range(codes[OUTPUTS]):
        if residual[r] != 0.0 and loss_codes[r] < HINGE:
            target = abs(targets[i, 0 if output >= 0 else r] - outputs[BASE, r])
            first = outputs[SEEN_BEFORE, r] == 0.0
            outputs[SEEN_BEFORE, r] = 1.0
            steepest, farthest = outputs[STEEPEST, r], outputs[FARTHEST, r]
            outputs[STEEPEST, r] = abs(residual[r]) if first else max(steepest, abs(residual[r]))
            if target > 0.0:
                outputs[FARTHEST, r] = target if first else max(farthest, target)


@compiled
def read_row(row, codes, index, raw):  # type: ignore[no-untyped-def]
    """Write a dense sample: all of it, or the entries that are not zero; return how many.

    -1 says that not all entries are finite numbers.
    """
    first, n_columns = codes[INTERCEPT], row.shape[0] + 1
    count = count_entries(row)
    if count < 0:
        return count
    count += first
    if codes[ORIGIN] == MEANS or count * _SPARSE > n_columns:
        shift(row, raw)
        count = n_columns
    else:
        pack(row, first, index, raw)
    if first:
        index[0], raw[0] = 0, 1.0
    return count


@compiled
def read_entries(places, entries, codes, column, index, raw):  # type: ignore[no-untyped-def]
    """Write a stored sample, as :func:`read_row` does.

    With marked columns NaN says that a value is not known.
    """
    first, n_columns = codes[INTERCEPT], column.shape[1]
    if codes[ORIGIN] == MARKED:
        count = first
        for e in range(places.shape[0]):
            if abs(entries[e]) == math.inf:
                return -1
            if not math.isnan(entries[e]):
                index[count], raw[count] = places[e] + 1, entries[e]
                count += 1
    else:
        count = count_entries(entries)
        if count < 0:
            return count
        count += first
        if count * _SPARSE > n_columns:
            spread(places, entries, raw)
            count = n_columns
        else:
            pack_stored(places, entries, first, index, raw)
    if first:
        index[0], raw[0] = 0, 1.0
    return count


@compiled
def measure(size, index, column, raw, value):  # type: ignore[no-untyped-def]
    """Write inputs: values from the origin of their columns, in units; of all without an index."""
    mean, inverse = column[MEAN], column[INVERSE]
    if index.shape[0] == 0:
        for j in range(size):
            value[j] = (raw[j] - mean[j]) * inverse[j]
    else:
        for e in range(size):
            value[e] = (raw[e] - mean[index[e]]) * inverse[index[e]]


@compiled
def score(size, index, scale, output, codes, constants, theta, image, column, value, part, scores):  # type: ignore[no-untyped-def]
    """Write the products of weights and inputs."""
    matrix, given = matrix_of(codes, theta, image), value
    if codes[KIND] == COLUMNS and constants[POWER] != 2.0:
        scale_by(size, index, column[FACTOR], value, part, scale)
        given, scale = part, 1.0
    if index.shape[0] == 0:
        whole_scores(size, given, scale, output, codes, matrix, scores)
    else:
        entry_scores(size, index, given, scale, output, codes, matrix, scores)


@compiled
def move_origin(  # type: ignore[no-untyped-def]
    size, places, scale, gain, codes, constants, theta, image, total, column, outputs, tree, levels,
    numbers, scratch, products,
):  # fmt: skip
    """Let means and units learn from a sample, and measure it anew.

    ``gain`` is the share of the sample in the means. Returns the sum of the inputs' magnitudes.
    """
    raw, value = scratch[_RAW], scratch[_VALUE]
    if codes[ORIGIN] == MEANS:
        matrix, own = matrix_of(codes, theta, image), 0.0
        for r in range(codes[OUTPUTS]):  # all means move by the same share of the inputs
            if codes[INTERCEPT]:
                own = scale * matrix[r, 0] * (column[FACTOR, 0] if codes[KIND] == COLUMNS else 1.0)
            outputs[OFFSET, r] += gain * (products[r] - own)
        inputs, far = move_means(gain, raw, column[MEAN], column[INVERSE], column[TOP], value)
    else:
        if codes[ORIGIN] == MARKED:
            weight = gain * numbers[WEIGHT]
            for e in range(size):
                j = places[e]
                if column[MARK, j] > 0.0:
                    column[KNOWN, j] += weight
                    moved = weight / column[KNOWN, j] * (raw[e] - column[MEAN, j])
                    column[MEAN, j] += moved
                    add_offset(j, moved, scale, codes, theta, image, column, outputs)
        measure(size, places, column, raw, value)
        inputs, far = 0.0, 0
        for e in range(size):
            j = e if places.shape[0] == 0 else places[e]
            inputs += abs(value[e])
            far += abs(raw[e] - column[MEAN, j]) > column[TOP, j]
    if far > 0:
        inputs += let_grow(
            size, places, scale, gain, codes, constants, theta, image, total, column, outputs, tree,
            levels, numbers, scratch,
        )  # fmt: skip
    return inputs


@compiled
def add_offset(j, moved, scale, codes, theta, image, column, outputs):  # type: ignore[no-untyped-def]
    """Let intercepts follow the mean of a column, which has moved so far."""
    matrix, part = matrix_of(codes, theta, image), scale * moved * column[INVERSE, j]
    if codes[KIND] == COLUMNS:
        part *= column[FACTOR, j]
    for r in range(codes[OUTPUTS]):
        outputs[OFFSET, r] += part * matrix[r, j]


@compiled
def let_grow(  # type: ignore[no-untyped-def]
    size, places, scale, gain, codes, constants, theta, image, total, column, outputs, tree, levels,
    numbers, scratch,
):  # fmt: skip
    """Let units grow for the values of a sample that need it, and measure these anew.

    Weights of steps of each column's own shrink around the mean before the sample, not around the
    one that it has moved. Returns by how much the magnitudes of the inputs have changed.
    """
    raw, value, change = scratch[_RAW], scratch[_VALUE], 0.0
    for e in range(size):
        j = e if places.shape[0] == 0 else places[e]
        away = raw[e] - column[MEAN, j]
        if not abs(away) > column[TOP, j]:
            continue
        moved = 0.0
        centred = codes[ORIGIN] == MEANS or column[MARK, j] > 0.0
        if codes[KIND] == FEATURES and centred:
            share = gain if codes[ORIGIN] == MEANS else gain * numbers[WEIGHT] / column[KNOWN, j]
            moved = away * share / (1.0 - share)
        add_offset(j, -moved, scale, codes, theta, image, column, outputs)
        grow(
            j, abs(away), codes, constants, theta, image, total, column, tree, levels, numbers,
            scratch,
        )  # fmt: skip
        add_offset(j, moved, scale, codes, theta, image, column, outputs)
        change -= abs(value[e])
        value[e] = away * column[INVERSE, j]
        change += abs(value[e])
    return change


@compiled
def note_names(  # type: ignore[no-untyped-def]
    places, weight, scale, codes, theta, image, column, outputs, numbers
):
    """Note which marked columns a sample speaks of, and take the mark from rare ones.

    Their origin is zero from then on, of which the model stays the same function.
    """
    for e in range(places.shape[0]):
        j = places[e] + 1
        if column[MARK, j] > 0.0:
            if column[PRESENT, j] < _USUAL * numbers[WEIGHT]:
                add_offset(j, -column[MEAN, j], scale, codes, theta, image, column, outputs)
                column[MARK, j], column[MEAN, j] = 0.0, 0.0
            column[PRESENT, j] += weight


@compiled
def judge(  # type: ignore[no-untyped-def]
    i, output, codes, loss_codes, loss_constants, labels, targets, scores, residual
):
    """Return the loss of a sample and its mistakes; write the derivatives in its scores."""
    if codes[MODE] == LABELS:
        missed = 1 if best_class(scores) != labels[i] else 0
        loss = label_loss(loss_codes[0], loss_constants[0], scores, labels[i], residual)
        return loss, missed
    loss, missed = 0.0, 0
    for r in range(codes[OUTPUTS]):
        residual[r] = 0.0
        target = targets[i, 0 if output >= 0 else r]
        if (output < 0 or r == output) and not math.isnan(target):
            own, slope = number_loss(loss_codes[r], loss_constants[r], scores[r], target)
            loss += own
            residual[r] = slope
            if loss_codes[r] >= HINGE and scores[r] * target <= 0.0:
                missed += 1
    return loss, missed


@compiled
def step_sums(  # type: ignore[no-untyped-def]
    size, places, moved, rate, residual, products, codes, constants, theta, image, column, tree,
    levels, numbers, scratch,
):  # fmt: skip
    """Take a gradient off the sums, and note what the account needs of it.

    Returns whether the sums have outgrown their unit.
    """
    power, n_outputs = constants[POWER], codes[OUTPUTS]
    for r in range(n_outputs):
        numbers[LINEAR] += residual[r] * products[r]
    sample = power_norm(moved, size, power, scratch)
    inside = power if codes[KIND] == ENTRIES else 2.0
    slope = power_norm(residual, n_outputs, inside, scratch) * sample
    numbers[LARGEST_SAMPLE] = max(numbers[LARGEST_SAMPLE], sample)
    numbers[LARGEST_GRADIENT] = max(numbers[LARGEST_GRADIENT], slope)
    if numbers[FIRST] == 0.0 and slope > 0.0:
        numbers[FIRST] = slope * slope
        if codes[RULE] == ADAPTIVE:  # nothing was played by it so far
            rate = rate_now(codes, constants, numbers)
    if slope > 0.0:
        numbers[LAST_RATE] = rate
    numbers[STEPS] += rate * slope * slope / (2.0 * constants[CONVEXITY])
    unknown = numbers[SQUARES] == 0.0  # what unit is right
    numbers[SQUARES] += slope * slope
    add_outer(size, places, moved, residual, codes, theta)
    if power == 2.0 and not codes[SIZED]:
        return False
    largest = derive(
        size, places, codes, constants, theta, image, column, tree, levels, numbers, scratch
    )
    return largest > math.pow(2.0, min(_LARGE, _RANGE / power)) or unknown


@fast_entry
def learn(  # type: ignore[no-untyped-def]
    dense, indptr, indices, data, labels, targets, importance, codes, constants, loss_codes,
    loss_constants, theta, image, total, column, outputs, tree, levels, numbers, losses, wrong,
):  # fmt: skip
    """Go through samples: predict each, note loss and mistake, and learn from it.

    Samples are the rows of ``dense``, or where that has none those of a CSR matrix. One of weight
    two is learned from twice, a heavy one in so many equal steps. Writes the weighted losses.
    Returns how many samples there were before one that is not all finite numbers.
    """
    stored = dense.shape[0] == 0
    n_samples = indptr.shape[0] - 1 if stored else dense.shape[0]
    n_outputs, n_columns = codes[OUTPUTS], column.shape[1]
    index, everything = np.empty(n_columns + 1, np.int64), np.empty(0, np.int64)
    scores, residual = np.zeros(n_outputs), np.zeros(n_outputs)
    products = np.zeros(n_outputs)
    scratch = np.empty((N_SCRATCH, max(n_columns, n_outputs) + 1))
    raw, value, packed = scratch[_RAW], scratch[_VALUE], scratch[_PACKED]
    centred, based = codes[ORIGIN] != ZERO, codes[SCALED] == 1 and codes[INTERCEPT] == 1
    begin = end = 0
    for i in range(n_samples):
        losses[i], wrong[i] = 0.0, 0
        if stored:
            begin, end = indptr[i], indptr[i + 1]
            size = read_entries(indices[begin:end], data[begin:end], codes, column, index, raw)
        else:
            size = read_row(dense[i], codes, index, raw)
        if size < 0:
            return i
        whole = size == n_columns and codes[ORIGIN] != MARKED
        places = everything if whole else index
        output = labels[i] if codes[MODE] == TASKS else -1
        repeats = max(1, math.ceil(min(importance[i], _REPEATS)))
        weight = importance[i] / repeats
        for turn in range(repeats):
            # Predict.
            rate = rate_now(codes, constants, numbers)
            scale = scale_now(rate, codes, constants, tree, numbers)
            if codes[ORIGIN] == MARKED and turn == 0 and weight > 0.0:
                note_names(
                    indices[begin:end], importance[i], scale, codes, theta, image, column, outputs,
                    numbers,
                )  # fmt: skip
            measure(size, places, column, raw, value)
            score(
                size, places, scale, -1 if centred else output, codes, constants, theta, image,
                column, value, scratch[_PART], products,
            )  # fmt: skip
            for r in range(n_outputs):
                scores[r] = products[r] + outputs[OFFSET, r] + outputs[BASE, r]
            loss, missed = judge(
                i, output, codes, loss_codes, loss_constants, labels, targets, scores, residual
            )
            losses[i] += weight * loss
            if turn == 0:
                wrong[i] = missed
                numbers[ROUNDS] += 1.0
                numbers[MISTAKES] += missed
            if not weight > 0.0:
                break
            numbers[LOSS] += weight * loss
            numbers[WEIGHT] += weight
            if codes[AVERAGED]:
                for r in range(n_outputs):
                    outputs[OFFSETS, r] += weight * outputs[OFFSET, r]
                if numbers[CLOCK] > _LONG * scale:
                    note_average(n_columns, everything, codes, theta, image, total, column, numbers)
                    numbers[CLOCK] = 0.0
                    column[SEEN] = 0.0
                numbers[CLOCK] += weight * scale
            # Means, units and targets.
            inputs, warm = 0.0, 1.0
            if codes[SCALED]:
                inputs = move_origin(
                    size, places, scale, weight / numbers[WEIGHT], codes, constants, theta, image,
                    total, column, outputs, tree, levels, numbers, scratch, products,
                )  # fmt: skip
                warm = numbers[WEIGHT] / (numbers[WEIGHT] + WARM)
            elif codes[KIND] == FEATURES:
                for e in range(size):
                    inputs += abs(value[e])
            if based and codes[MODE] != LABELS:
                move_base(i, output, weight, codes, loss_codes, residual, targets, outputs)
            if codes[KIND] == FEATURES:
                numbers[INPUTS] += weight * inputs
            # Step.
            steepest = 0.0
            for r in range(n_outputs):
                steepest = max(steepest, abs(residual[r]))
            if not steepest > constants[QUIET]:
                continue
            if turn == 0:
                numbers[UPDATES] += 1.0
            for r in range(n_outputs):
                if abs(residual[r]) <= constants[QUIET]:
                    residual[r] = 0.0
            count, where, moved = size, places, value
            if whole and codes[ORIGIN] != MEANS:
                count = pack_whole(n_columns, value, index, packed)
                if count * _LIGHT < n_columns:
                    where, moved = index, packed
                else:
                    count = n_columns
            if codes[AVERAGED]:
                note_average(count, where, codes, theta, image, total, column, numbers)
            if theta is None:
                reach = warm * constants[RATE] * numbers[WEIGHT] / numbers[INPUTS]
                if codes[MODE] != LABELS:
                    widen(i, output, codes, loss_codes, residual, targets, outputs)
                step_features(
                    count, where, moved, residual, weight, reach, codes, image, column, outputs,
                    scratch,
                )  # fmt: skip
            else:
                for r in range(n_outputs):
                    residual[r] *= weight * warm
                outgrown = step_sums(
                    count, where, moved, rate, residual, products, codes, constants, theta, image,
                    column, tree, levels, numbers, scratch,
                )  # fmt: skip
                if outgrown:
                    refresh(
                        codes, constants, theta, image, total, column, tree, levels, numbers,
                        scratch,
                    )  # fmt: skip
    return n_samples


@entry
def learn_row(  # type: ignore[no-untyped-def]
    x, mode, label, target, codes, constants, loss_codes, loss_constants, theta, image, total,
    column, outputs, tree, levels, numbers,
):  # fmt: skip
    """Learn from one dense sample; return the rounds so far.

    -1 says that it is not all finite numbers, -2 that the losses no longer are.
    """
    codes[MODE] = mode
    labels, ends = np.full(1, label), np.zeros(1, np.int64)
    done = learn(
        x.reshape((1, x.shape[0])), ends, ends[:0], np.empty(0), labels, target, np.ones(1), codes,
        constants, loss_codes, loss_constants, theta, image, total, column, outputs, tree, levels,
        numbers, np.empty(1), np.empty(1, np.int64),
    )  # fmt: skip
    if done < 1:
        return -1
    return int(numbers[ROUNDS]) if math.isfinite(numbers[LOSS]) else -2


@fast_entry
def scores_of(  # type: ignore[no-untyped-def]
    dense, codes, constants, theta, image, column, outputs, tree, numbers, scores
):
    """Write the scores of a dense sample, as the coming round would have them."""
    n_columns = column.shape[1]
    raw, value, part = np.empty(n_columns), np.empty(n_columns), np.empty(n_columns)
    everything = np.empty(0, np.int64)
    shift(dense, raw)
    if codes[INTERCEPT]:
        raw[0] = 1.0
    scale = scale_now(rate_now(codes, constants, numbers), codes, constants, tree, numbers)
    measure(n_columns, everything, column, raw, value)
    score(
        n_columns, everything, scale, -1, codes, constants, theta, image, column, value, part,
        scores,
    )  # fmt: skip
    for r in range(codes[OUTPUTS]):
        scores[r] += outputs[OFFSET, r] + outputs[BASE, r]
