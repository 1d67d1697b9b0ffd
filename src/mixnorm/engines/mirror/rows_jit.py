"""The compiled loop of online mirror descent: predict, count the loss, step, for each sample.

The arrays that the loop gets hold all of the state of a learner, so that it continues exactly where
it stopped, in whatever parts the samples come. A sample with few entries is processed entry by
entry, any other as a whole row, which compilers vectorise.

A round has this order. The sample is measured by the means and units known so far, and predicted.
Then means and units learn from it. The score of an output is
``weights . inputs + rate * OFFSET + BASE``. When means move, ``OFFSET`` moves with them, so that
the model stays the same function. It is multiplied by the rate so that the part from early weights
fades as these weights do. The step comes last, with inputs in the new units.
"""

from __future__ import annotations

import math

import numpy as np

from mixnorm.engines.mirror import layout as at
from mixnorm.engines.mirror.origin_jit import (
    find_grown,
    let_grow,
    measure,
    move_origin,
    note_names,
)
from mixnorm.engines.mirror.sums_jit import (
    add_outer,
    count_average,
    derive,
    is_outgrown,
    matrix_of,
    note_average,
    rate_now,
    scale_now,
    step_sums,
)
from mixnorm.engines.mirror.vectors_jit import (
    compiled,
    count_entries,
    fast_entry,
    largest,
    magnitude,
    pack,
    pack_stored,
    pack_whole,
    plain,
    scale_by,
    shift,
    spread,
)
from mixnorm.losses.compiled import MARGIN_BOX, best_class, label_loss, number_loss

# Compiled code reads all of these as constants.
# Weight of the samples after which steps have half their size: early units are often too small, and
# inputs in them too large. Part of the derivation ("First steps").
WARM = 30.0
# Rounds of the present scale on the clock. Averages multiply differences of its readings, which
# lose digits when readings are large.
_LONGEST_CLOCK = 65536.0
# A sample is processed entry by entry if at most one in eight entries is not zero, and its step if
# less than one in three is not: loops over whole rows are vectorised, and loops by index are not. A
# step writes as well as reads, which makes skipping zeros pay sooner.
_SPARSE_ROW_RATIO, _SPARSE_STEP_RATIO = 8, 3
# Steps for a sample of any weight: one step of a large weight would overshoot.
_MOST_STEPS_PER_ROW = 64.0
# In single precision, as literals would turn the expression to double. The tiny number keeps the
# inverse root of a zero finite; 1e-300 does so in double precision.
_SINGLE_ONE, _SINGLE_TINY = np.float32(1.0), np.float32(1e-30)


@compiled
def whole_scores(count, part, scale, output, codes, matrix, scores):  # type: ignore[no-untyped-def]
    """Write the products of rows of a matrix with a whole sample, four rows at a time.

    ``output`` is the only row to compute, or -1 for all.
    """
    # Four rows share each entry that is read, and four sums do not wait for each other.
    first, last = (0, codes[at.OUTPUTS]) if output < 0 else (output, output + 1)
    r = first
    while r + 4 <= last:  # r grows in both loops
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
    first, last = (0, codes[at.OUTPUTS]) if output < 0 else (output, output + 1)
    for r in range(first, last):
        row, total = matrix[r], 0.0
        for e in range(count):
            total += row[index[e]] * part[e]
        scores[r] = scale * total


@compiled
def step_features(  # type: ignore[no-untyped-def]
    count, index, value, residual, weight, rate, codes, image, column, outputs, scratch
):
    """Take a step with a size for each column (:eq:`feature-steps`).

    Derivatives are taken in units of the largest seen of their output, and steps in units of its
    largest target.
    """
    energy, part = column[at.ENERGY], scratch[at.S_PART]
    # The squared gradient of column j is ``strength * value[j]**2``: outputs and columns separate,
    # and one pass over each is enough.
    strength = 0.0
    for r in range(codes[at.OUTPUTS]):
        residual[r] /= outputs[at.STEEPEST, r]
        strength += residual[r] * residual[r]
        residual[r] *= weight * outputs[at.FARTHEST, r]
    strength *= weight / codes[at.OUTPUTS]
    if index.shape[0] > 0:
        for e in range(count):
            j = index[e]
            energy[j] += strength * value[e] * value[e]
            part[e] = rate * value[e] / math.sqrt(energy[j] + 1e-300)
    else:
        for j in range(count):
            energy[j] += strength * value[j] * value[j]
        # Two loops: scaled inputs are at most one, so that their energies fit into single
        # precision, which is enough for a step size and twice as fast.
        if codes[at.SCALED]:
            for j in range(count):
                root = np.sqrt(np.float32(energy[j]) + _SINGLE_TINY)
                part[j] = rate * value[j] * np.float64(_SINGLE_ONE / root)
        else:
            for j in range(count):
                part[j] = rate * value[j] / math.sqrt(energy[j] + 1e-300)
    add_outer(count, index, part, residual, codes, image)


@plain
def move_base(i, output, weight, codes, loss_codes, targets, outputs):  # type: ignore[no-untyped-def]
    """Update the means of targets that are numbers."""
    for r in range(codes[at.OUTPUTS]):
        target = targets[i, 0 if output >= 0 else r]
        if loss_codes[r] < MARGIN_BOX and (output < 0 or r == output) and not math.isnan(target):
            outputs[at.HEARD, r] += weight
            outputs[at.BASE, r] += weight / outputs[at.HEARD, r] * (target - outputs[at.BASE, r])


@plain
def note_largest(i, output, codes, loss_codes, residual, targets, outputs):  # type: ignore[no-untyped-def]
    """Note the largest derivatives and targets of outputs that are numbers."""
    for r in range(codes[at.OUTPUTS]):
        if residual[r] != 0.0 and loss_codes[r] < MARGIN_BOX:
            target = abs(targets[i, 0 if output >= 0 else r] - outputs[at.BASE, r])
            # The initial ones stand in until there is a first value, however small that is.
            first = outputs[at.SEEN_BEFORE, r] == 0.0
            outputs[at.SEEN_BEFORE, r] = 1.0
            steepest, farthest = outputs[at.STEEPEST, r], outputs[at.FARTHEST, r]
            outputs[at.STEEPEST, r] = abs(residual[r]) if first else max(steepest, abs(residual[r]))
            if target > 0.0:
                outputs[at.FARTHEST, r] = target if first else max(farthest, target)


@compiled
def is_whole(count, n_columns, codes):  # type: ignore[no-untyped-def]
    """Tell whether a sample with ``count`` entries is processed as a whole row."""
    # Moving means change the inputs of all columns, and marked ones only those of the entries
    # given.
    if codes[at.ORIGIN] == at.ZERO:
        return count * _SPARSE_ROW_RATIO > n_columns
    return codes[at.ORIGIN] == at.MEANS


@compiled
def read_row(row, codes, index, raw):  # type: ignore[no-untyped-def]
    """Write a dense sample, or its entries that are not zero; return the number of these entries.

    The result is -1 if an entry is not finite.
    """
    first, n_columns = codes[at.INTERCEPT], row.shape[0] + 1
    count = count_entries(row)
    if count < 0:
        return count
    count += first
    # Counting first costs a pass, which is in the cache for the second one, and saves an index of a
    # dense sample.
    if is_whole(count, n_columns, codes):
        shift(row, raw)
    else:
        pack(row, first, index, raw)
    if first:
        index[0], raw[0] = 0, 1.0
    return count


@compiled
def read_entries(places, entries, codes, column, index, raw):  # type: ignore[no-untyped-def]
    """Write a stored sample, as :func:`read_row` does.

    With marked columns NaN means an unknown value.
    """
    first, n_columns = codes[at.INTERCEPT], column.shape[1]
    if codes[at.ORIGIN] == at.MARKED:
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
        if is_whole(count, n_columns, codes):
            spread(places, entries, raw)
        else:
            pack_stored(places, entries, first, index, raw)
    if first:
        index[0], raw[0] = 0, 1.0
    return count


@compiled
def score(  # type: ignore[no-untyped-def]
    size, index, scale, output, codes, constants, theta, matrix, column, value, part, scores
):
    """Write the products of weights and inputs."""
    # Factors go onto the inputs once, not onto the weights of every output. Steps by feature have
    # none.
    given = value
    if theta is not None and codes[at.KIND] == at.COLUMNS and constants[at.POWER] != 2.0:
        scale_by(size, index, column[at.FACTOR], value, part, scale)
        given, scale = part, 1.0
    if index.shape[0] == 0:
        whole_scores(size, given, scale, output, codes, matrix, scores)
    else:
        entry_scores(size, index, given, scale, output, codes, matrix, scores)


@compiled
def split_importance(importance):  # type: ignore[no-untyped-def]
    """Return the weight of each part of a heavy sample, and the number of parts."""
    # A whole number of equal parts: weight two is then the same as the sample twice.
    repeats = max(1, math.ceil(min(importance, _MOST_STEPS_PER_ROW)))
    return importance / repeats, repeats


@compiled
def compute_loss(  # type: ignore[no-untyped-def]
    i, output, based, codes, loss_codes, loss_constants, labels, joint, targets, outputs, scores,
    residual,
):  # fmt: skip
    """Return the loss of a sample and its mistakes; write the derivatives in its scores.

    The first number of an output costs nothing if the mean of its numbers is the base of scores.
    """
    loss, missed = 0.0, 0
    if joint is not None:
        missed = 1 if best_class(scores) != labels[i] else 0
        loss = label_loss(loss_codes[0], loss_constants[0], scores, labels[i], residual)
    if targets is not None:
        for r in range(codes[at.OUTPUTS]):
            residual[r] = 0.0  # that of an earlier sample is still in it
            target = targets[i, 0 if output >= 0 else r]
            if (output < 0 or r == output) and not math.isnan(target):
                # Codes below MARGIN_BOX are losses of numbers, those above of labels -1 and 1.
                # Before the first number the size of the numbers is not known, and neither is that
                # of an error.
                if based and loss_codes[r] < MARGIN_BOX and outputs[at.HEARD, r] == 0.0:
                    continue
                own, slope = number_loss(loss_codes[r], loss_constants[r], scores[r], target)
                loss += own
                residual[r] = slope
                if loss_codes[r] >= MARGIN_BOX and scores[r] * target <= 0.0:
                    missed += 1
    return loss, missed


@compiled
def find_step(count, n_columns, residual, index, codes, constants, scratch):  # type: ignore[no-untyped-def]
    """Leave small derivatives out, and find the entries to step in.

    Returns the number of entries, whether they are those of all columns, and the row of the scratch
    space that has them.
    """
    for r in range(codes[at.OUTPUTS]):
        if abs(residual[r]) <= constants[at.QUIET]:
            residual[r] = 0.0
    if not is_whole(count, n_columns, codes):
        return count, False, at.S_VALUE
    # Measured from means, hardly any input is zero; from zero, many may be.
    if codes[at.ORIGIN] == at.ZERO and count * _SPARSE_STEP_RATIO < n_columns:
        size = pack_whole(n_columns, scratch[at.S_VALUE], index, scratch[at.S_PACKED])
        return size, False, at.S_PACKED
    return n_columns, True, at.S_VALUE


@fast_entry
def learn(  # type: ignore[no-untyped-def]
    dense, indptr, indices, data, labels, joint, targets, importance, codes, constants, loss_codes,
    loss_constants, theta, image, by_feature, by_name, total, column, outputs, tree, levels,
    numbers, index, scratch, losses, wrong,
):  # fmt: skip
    """Go through samples: predict each, note loss and mistake, and learn from it.

    The loop learns twice from a sample of weight two, and in several equal steps from a heavy one.
    It returns the number of samples before one that is not finite. It stops if rare work has to be
    done (``at.EVENT``), and is called again afterwards.

    The arguments are single arrays and not fields of an object. numba compiles about 5 % longer for
    named tuples of as many arrays, and cannot keep its own classes (``jitclass``) on disk. There
    are six groups. Functions that take some of them keep their names and their order.

    * The samples: the rows of ``dense``; or, if it has none, those of the CSR matrix ``indptr``,
      ``indices``, ``data``.
    * What they should give: ``labels`` (class or task), ``targets``, and ``importance``, the weight
      of each sample. See :meth:`OnlineLearner.learn`. One of ``joint`` and ``targets`` is None: the
      first for losses of numbers, the second for losses of labels.
    * The plan: ``codes`` and ``constants``, whose places ``layout`` names, and for each output the
      code and the constants of its loss.
    * The state, changed in place. ``theta``, ``image`` and ``total`` have a row for each output and
      a column for each column of the data: minus the sum of gradients, its powers or the weights
      themselves, and the sum of the weights over the rounds. ``theta`` is None for steps by
      feature, and only then ``by_feature`` is not; ``image`` is None for norms of columns, and
      ``by_name`` unless columns may be marked. Code behind a test for None is not compiled.
      ``column`` and ``outputs`` have facts about each column and each output, ``numbers`` those
      about all rounds; ``layout`` lists them. ``tree`` sums powers of norms; ``levels`` says where
      its levels begin.
    * Arrays to work in, whose rows ``layout`` lists. ``index`` says where to go on.
    * The results, written: ``losses``, weighted, and ``wrong``, the mistakes of each sample.
    """
    stored = dense.shape[0] == 0
    n_samples = indptr.shape[0] - 1 if stored else dense.shape[0]
    n_outputs, n_columns = codes[at.OUTPUTS], column.shape[1]
    entries, grown, place = index[at.I_ENTRIES], index[at.I_GROWN], index[at.I_PLACE]
    everything, matrix = entries[:0], matrix_of(theta, image)
    scores, residual = scratch[at.S_SCORES, :n_outputs], scratch[at.S_RESIDUAL, :n_outputs]
    products, value = scratch[at.S_PRODUCTS], scratch[at.S_VALUE]
    # Without units the inputs are the entries as they are: both names are of one array.
    raw = scratch[at.S_RAW] if codes[at.SCALED] else value
    centred, based = codes[at.ORIGIN] != at.ZERO, codes[at.SCALED] == 1 and codes[at.INTERCEPT] == 1
    begin = end = 0  # so that compilers know their type if samples are dense
    for i in range(place[at.SAMPLE], n_samples):
        if place[at.TURN] == 0:
            losses[i], wrong[i] = 0.0, 0
        if stored:
            begin, end = indptr[i], indptr[i + 1]
            count = read_entries(indices[begin:end], data[begin:end], codes, column, entries, raw)
        else:
            count = read_row(dense[i], codes, entries, raw)
        if count < 0:
            return i
        whole = is_whole(count, n_columns, codes)
        size, places = (n_columns, everything) if whole else (count, entries)
        output = labels[i] if codes[at.MODE] == at.TASKS else -1
        # Parts of a heavy sample are rounds of their own, except that the sample is counted once.
        weight, repeats = split_importance(importance[i])
        for turn in range(place[at.TURN], repeats):
            # Predict.
            rate = rate_now(codes, constants, numbers)
            scale = 1.0  # steps by feature store the weights
            if theta is not None:
                scale = scale_now(rate, codes, constants, tree, numbers)
            late = numbers[at.CLOCK] > _LONGEST_CLOCK * scale
            if late and codes[at.AVERAGED] and weight > 0.0:
                place[at.SAMPLE], place[at.TURN], place[at.EVENT] = i, turn, at.LATE
                return i
            # Offsets are in units of the rate. Without a rate all weights are zero, and so is what
            # is divided by it.
            safe_rate = rate if rate > 0.0 else 1.0
            if by_name is not None and turn == 0 and weight > 0.0:
                note_names(
                    indices[begin:end], importance[i], scale / safe_rate, codes, constants, theta,
                    image, total, by_feature, column, outputs, tree, levels, numbers, scratch,
                    grown,
                )  # fmt: skip
            if codes[at.SCALED]:
                measure(size, places, column, raw, value)
            # All outputs if means move, as all their intercepts follow; else the one of the task.
            score(
                size, places, scale, -1 if centred else output, codes, constants, theta, matrix,
                column, value, scratch[at.S_PART], products,
            )  # fmt: skip
            for r in range(n_outputs):
                scores[r] = products[r] + rate * outputs[at.OFFSET, r] + outputs[at.BASE, r]
            loss, missed = compute_loss(
                i, output, based, codes, loss_codes, loss_constants, labels, joint, targets,
                outputs, scores, residual,
            )  # fmt: skip
            losses[i] += weight * loss
            if turn == 0:
                wrong[i] = missed
                numbers[at.ROUNDS] += 1.0
                numbers[at.MISTAKES] += missed
            # A sample of weight zero is predicted and counted as seen, and changes nothing else.
            if not weight > 0.0:
                break
            numbers[at.LOSS] += weight * loss
            numbers[at.WEIGHT] += weight
            # The weights of this round, before the step, are those that the average is of.
            if codes[at.AVERAGED]:
                count_average(weight, rate, scale, outputs, numbers)
            # Means, units and targets. After the prediction, which must not use the sample, and
            # before the step, whose inputs are in the new units.
            inputs = 0.0
            if codes[at.SCALED]:
                gain = weight / numbers[at.WEIGHT]
                inputs, far = move_origin(
                    size, places, scale, safe_rate, gain, codes, matrix, column, outputs, numbers,
                    scratch, products,
                )  # fmt: skip
                # Rare after the first samples.
                if far > 0:
                    n_grown = 0
                    if codes[at.AVERAGED] or codes[at.KIND] != at.FEATURES:
                        n_grown = find_grown(size, places, column, raw, grown)
                    if codes[at.AVERAGED]:
                        note_average(n_grown, grown, codes, matrix, total, column, numbers)
                    inputs += let_grow(
                        size, places, scale / safe_rate, gain, codes, theta, image, total,
                        by_feature, column, outputs, numbers, scratch,
                    )  # fmt: skip
                    if theta is not None and n_grown > 0:
                        derive(
                            n_grown, grown, codes, constants, theta, image, column, tree, levels,
                            numbers, scratch,
                        )  # fmt: skip
            elif codes[at.KIND] == at.FEATURES:
                inputs = magnitude(size, value)
            if targets is not None and based:
                move_base(i, output, weight, codes, loss_codes, targets, outputs)
            # Step. ``not >`` also leaves out NaN, which an overflow may have made.
            if by_feature is not None:
                numbers[at.INPUTS] += weight * inputs
            if not largest(residual) > constants[at.QUIET]:
                continue
            numbers[at.UPDATES] += 1.0 if turn == 0 else 0.0
            n_moved, all_moved, row = find_step(
                count, n_columns, residual, entries, codes, constants, scratch
            )
            moved, moved_places = scratch[row], everything if all_moved else entries
            # The columns that are about to change add what they were played with so far.
            if codes[at.AVERAGED]:
                note_average(n_moved, moved_places, codes, matrix, total, column, numbers)
            # A part may weigh more than one if there are more than the most steps; it must not
            # overshoot.
            bounded, warm = weight, 1.0
            if codes[at.SCALED]:
                bounded, warm = min(weight, 1.0), numbers[at.WEIGHT] / (numbers[at.WEIGHT] + WARM)
            if by_feature is not None:
                # c_t of :eq:`feature-steps`: INPUTS over WEIGHT is the mean of the inputs'
                # magnitudes.
                reach = warm * constants[at.RATE] * numbers[at.WEIGHT] / numbers[at.INPUTS]
                if targets is not None:
                    note_largest(i, output, codes, loss_codes, residual, targets, outputs)
                step_features(
                    n_moved, moved_places, moved, residual, bounded, reach, codes, image, column,
                    outputs, scratch,
                )  # fmt: skip
            if theta is not None:
                for r in range(n_outputs):
                    residual[r] *= bounded * warm
                unknown = step_sums(
                    n_moved, moved_places, moved, rate, residual, products, codes, constants, theta,
                    numbers, scratch,
                )  # fmt: skip
                if constants[at.POWER] != 2.0 or codes[at.SIZED]:
                    square = derive(
                        n_moved, moved_places, codes, constants, theta, image, column, tree, levels,
                        numbers, scratch,
                    )  # fmt: skip
                    # Rare: the sums double a few times before their powers come near the range of
                    # floats.
                    if unknown or is_outgrown(square, constants[at.POWER]):
                        place[at.SAMPLE], place[at.TURN] = i, turn + 1
                        place[at.EVENT] = at.OUTGROWN
                        return i
        place[at.TURN] = 0
    return n_samples
