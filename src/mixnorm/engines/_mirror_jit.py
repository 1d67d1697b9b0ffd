"""The compiled loop of online mirror descent: predict, suffer, step, a sample at a time.

Matrices have a row per output and a column per column of the data; column 0 is the intercept's. All
of a learner's state lies in the arrays that the loop is given, so that it goes on exactly where it
stopped, however the samples were handed over. A sample with few entries is worked on entry by
entry, any other as a whole row, which compilers turn into wide instructions; which of the two it is
depends on the sample alone, and not on how it is stored.
"""

from __future__ import annotations

import math

import numpy as np

from mixnorm.engines._vectors_jit import (
    beyond,
    climb,
    compiled,
    count_entries,
    pack,
    pack_stored,
    pack_whole,
    plain,
    put,
    raise_to,
    scale_by,
    scale_inputs,
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

# How weights come from sums of gradients: by columns, by entries, or by steps of each column's own.
COLUMNS, ENTRIES, FEATURES = 0, 1, 2
# Step sizes.
NONE, FIXED, ANYTIME, ADAPTIVE = 0, 1, 2, 3
# What a sample brings.
LABELS, TASKS, TARGETS = 0, 1, 2

# Places of ``codes``.
KIND, RULE, MODE, SCALED, INTERCEPT, AVERAGED, SIZED, OUTPUTS = range(8)
N_CODES = 8
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
) = range(14)
N_NUMBERS = 16
# Rows of ``column``: the largest input and what inputs are multiplied by, the factor that turns
# sums of gradients into weights, the clock when last averaged, and the sum of squared gradients.
TOP, INVERSE, FACTOR, SEEN, ENERGY = range(5)
N_COLUMN = 5
# Rows of ``outputs``, for steps of each column's own.
STEEPEST, FARTHEST, SEEN_BEFORE = range(3)
N_OUTPUTS = 3
# Rows of the scratch space.
_PART, _SIZE, _POWER, _HELD, _OTHER = range(5)
N_SCRATCH = 5


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


@compiled
def note_average(count, index, codes, theta, image, total, column, numbers):  # type: ignore[no-untyped-def]
    """Add to the sum of weights what columns were since they last changed; all without an index."""
    whole = index.shape[0] == 0
    seen, factor = column[SEEN], column[FACTOR]
    for e in range(count):
        j = e if whole else index[e]
        passed = numbers[CLOCK] - seen[j]
        seen[j] = numbers[CLOCK]
        if codes[KIND] == COLUMNS:
            passed *= factor[j]
        for r in range(codes[OUTPUTS]):
            total[r, j] += passed * (theta[r, j] if codes[KIND] == COLUMNS else image[r, j])


@compiled
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


@plain
def rate_now(codes, constants, numbers):  # type: ignore[no-untyped-def]
    """Return the step size of the coming round."""
    if codes[RULE] == ANYTIME:
        return constants[RATE] / math.sqrt(numbers[ROUNDS] + 1.0)
    if codes[RULE] == ADAPTIVE:
        seen = numbers[FIRST] + numbers[SQUARES]
        return constants[RATE] * math.sqrt(constants[CONVEXITY] / seen) if seen > 0.0 else 0.0
    return constants[RATE]


@plain
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
    """Let a column have a new largest input.

    Its past updates are made what they would have been with inputs divided by it.
    """
    top = column[TOP, j]
    column[TOP, j], column[INVERSE, j] = size, 1.0 / size
    if not top > 0.0:
        return
    part, place = top / size, np.empty(1, np.int64)
    place[0] = j
    if codes[AVERAGED]:
        note_average(1, place, codes, theta, image, total, column, numbers)
    if codes[KIND] == FEATURES:
        column[ENERGY, j] *= part * part
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
def most(vector, count, power, scratch):  # type: ignore[no-untyped-def]
    """Return a little more than the norm of the first ``count`` entries, for a power of 2 or more.

    By Hoelder's inequality it lies between those of the even powers around it, which are quick.
    """
    largest, half = 0.0, math.floor(0.5 * power)
    for e in range(count):
        largest = max(largest, abs(vector[e]))
    if not largest > 0.0:
        return 0.0
    inverse, less, more = 1.0 / largest, 0.0, 0.0
    if half == 2:
        for e in range(count):
            square = (vector[e] * inverse) * (vector[e] * inverse)
            less += square * square
            more += square * square * square
    elif half == 3:
        for e in range(count):
            square = (vector[e] * inverse) * (vector[e] * inverse)
            less += square * square * square
            more += (square * square) * (square * square)
    else:
        lifted = scratch[_POWER]
        for e in range(count):
            lifted[e] = (vector[e] * inverse) * (vector[e] * inverse)
        for _ in range(half - 1):
            for e in range(count):
                lifted[e] *= (vector[e] * inverse) * (vector[e] * inverse)
        for e in range(count):
            less += lifted[e]
            more += lifted[e] * ((vector[e] * inverse) * (vector[e] * inverse))
    part = 0.5 * power - half
    return largest * math.pow(math.pow(less, 1.0 - part) * math.pow(more, part), 1.0 / power)


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
    count, index, value, residual, rate, codes, image, column, outputs, scratch
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
        residual[r] *= outputs[FARTHEST, r]
    strength /= codes[OUTPUTS]
    if index.shape[0] > 0:
        for e in range(count):
            j = index[e]
            energy[j] += strength * value[e] * value[e]
            part[e] = rate * value[e] / math.sqrt(energy[j] + 1e-300)
    else:
        for j in range(count):
            energy[j] += strength * value[j] * value[j]
            part[j] = rate * value[j] / math.sqrt(energy[j] + 1e-300)
    add_outer(count, index, part, residual, codes, image)


@plain
def widen(i, output, codes, loss_codes, residual, targets, outputs):  # type: ignore[no-untyped-def]
    """Note the largest derivatives and targets of outputs that are numbers."""
    for r in range(codes[OUTPUTS]):
        if residual[r] != 0.0 and loss_codes[r] < HINGE:
            target = abs(targets[i, 0 if output >= 0 else r])
            first = outputs[SEEN_BEFORE, r] == 0.0
            outputs[SEEN_BEFORE, r] = 1.0
            steepest, farthest = outputs[STEEPEST, r], outputs[FARTHEST, r]
            outputs[STEEPEST, r] = abs(residual[r]) if first else max(steepest, abs(residual[r]))
            if target > 0.0:
                outputs[FARTHEST, r] = target if first else max(farthest, target)


@compiled
def learn(  # type: ignore[no-untyped-def]
    dense, indptr, indices, data, labels, targets, importance, codes, constants, loss_codes,
    loss_constants, theta, image, total, column, outputs, tree, levels, numbers, losses, wrong,
):  # fmt: skip
    """Go through samples: predict each, note loss and mistake, and learn from it.

    Samples are the rows of ``dense``, or where that has none those of a CSR matrix. Returns how
    many there were before one that is not all finite numbers.
    """
    stored = dense.shape[0] == 0
    n_samples = indptr.shape[0] - 1 if stored else dense.shape[0]
    n_outputs, mode, n_columns = codes[OUTPUTS], codes[MODE], column.shape[1]
    index, value = np.empty(n_columns + 1, np.int64), np.empty(n_columns + 1)
    packed = np.empty(n_columns + 1)
    everything = np.empty(0, np.int64)
    scores, residual = np.zeros(n_outputs), np.zeros(n_outputs)
    scratch = np.empty((N_SCRATCH, max(n_columns, n_outputs) + 1))
    part, power = scratch[_PART], constants[POWER]
    large = math.pow(2.0, min(_LARGE, _RANGE / power))
    for i in range(n_samples):
        # The sample: its entries that are not zero, or all of it.
        first = codes[INTERCEPT]
        if stored:
            begin, end = indptr[i], indptr[i + 1]
            count = count_entries(data[begin:end])
        else:
            count = count_entries(dense[i])
        if count < 0:
            return i
        count += first
        whole = count * _SPARSE > n_columns
        if whole and stored:
            spread(indices[begin:end], data[begin:end], value)
        elif whole:
            shift(dense[i], value)
        elif stored:
            pack_stored(indices[begin:end], data[begin:end], first, index, value)
        else:
            pack(dense[i], first, index, value)
        if first:
            index[0], value[0] = 0, 1.0
        size, places = (n_columns, everything) if whole else (count, index)
        # Inputs are divided by the largest seen.
        inputs = 0.0
        if codes[SCALED]:
            if beyond(size, places, value, column[TOP]):
                for e in range(size):
                    j = e if whole else places[e]
                    if abs(value[e]) > column[TOP, j]:
                        grow(
                            j, abs(value[e]), codes, constants, theta, image, total, column, tree,
                            levels, numbers, scratch,
                        )  # fmt: skip
            inputs = scale_inputs(size, places, column[INVERSE], value)
        elif codes[KIND] == FEATURES:
            inputs = scale_inputs(size, places, column[INVERSE], value)
        # Scores.
        rate = rate_now(codes, constants, numbers)
        scale = scale_now(rate, codes, constants, tree, numbers)
        if codes[AVERAGED] and numbers[CLOCK] > _LONG * scale:
            note_average(n_columns, everything, codes, theta, image, total, column, numbers)
            numbers[CLOCK] = 0.0
            column[SEEN] = 0.0
        numbers[CLOCK] += scale
        output = labels[i] if mode == TASKS else -1
        matrix = theta if codes[KIND] == COLUMNS else image
        given = value
        if codes[KIND] == COLUMNS and power != 2.0:
            scale_by(size, places, column[FACTOR], value, part, scale)
            given, scale = part, 1.0
        if whole:
            whole_scores(n_columns, given, scale, output, codes, matrix, scores)
        else:
            entry_scores(count, index, given, scale, output, codes, matrix, scores)
        # Loss.
        loss, missed = 0.0, 0
        if mode == LABELS:
            missed += best_class(scores) != labels[i]
            loss = label_loss(loss_codes[0], loss_constants[0], scores, labels[i], residual)
        else:
            for r in range(n_outputs):
                residual[r] = 0.0
                target = targets[i, 0 if output >= 0 else r]
                if (output < 0 or r == output) and not math.isnan(target):
                    own, slope = number_loss(loss_codes[r], loss_constants[r], scores[r], target)
                    loss += own
                    residual[r] = slope
                    if loss_codes[r] >= HINGE:
                        missed += scores[r] * target <= 0.0
        weight = importance[i]
        losses[i], wrong[i] = loss, missed
        numbers[ROUNDS] += 1.0
        numbers[MISTAKES] += missed
        numbers[LOSS] += weight * loss
        if codes[KIND] == FEATURES:
            numbers[INPUTS] += inputs
        steepest = 0.0
        for r in range(n_outputs):
            residual[r] *= weight
            steepest = max(steepest, abs(residual[r]))
        if not steepest > constants[QUIET]:
            continue
        # Step.
        numbers[UPDATES] += 1.0
        moved = value
        if whole and count * _LIGHT < n_columns:
            size = pack_whole(n_columns, value, index, packed)
            places, moved = index, packed
        if codes[AVERAGED]:
            note_average(size, places, codes, theta, image, total, column, numbers)
        if codes[KIND] == FEATURES:
            reach = constants[RATE] * numbers[ROUNDS] / numbers[INPUTS]
            if mode != LABELS:
                widen(i, output, codes, loss_codes, residual, targets, outputs)
            step_features(
                size, places, moved, residual, reach, codes, image, column, outputs, scratch
            )
            continue
        for r in range(n_outputs):
            numbers[LINEAR] += residual[r] * scores[r]
        if codes[RULE] == NONE:
            sample = most(moved, size, power, scratch)
        else:
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
        if power != 2.0 or codes[SIZED]:
            largest = derive(
                size, places, codes, constants, theta, image, column, tree, levels, numbers, scratch
            )
            if largest > large or unknown:
                refresh(
                    codes, constants, theta, image, total, column, tree, levels, numbers, scratch
                )
    return n_samples


@plain
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


@compiled
def scores_of(dense, codes, constants, theta, image, column, tree, numbers, scores):  # type: ignore[no-untyped-def]
    """Write the scores of a dense sample, as the coming round would have them."""
    n_columns = column.shape[1]
    part = np.empty(n_columns + 1)
    shift(dense, part)
    if codes[INTERCEPT]:
        part[0] = 1.0
    everything = np.empty(0, np.int64)
    rate = rate_now(codes, constants, numbers)
    scale = scale_now(rate, codes, constants, tree, numbers)
    scale_by(n_columns, everything, column[INVERSE], part, part, scale)
    if codes[KIND] == COLUMNS:
        scale_by(n_columns, everything, column[FACTOR], part, part, 1.0)
        whole_scores(n_columns, part, 1.0, -1, codes, theta, scores)
    else:
        whole_scores(n_columns, part, 1.0, -1, codes, image, scores)
