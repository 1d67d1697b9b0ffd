"""The layout of the arrays of the compiled loops of online mirror descent.

Compiled code reads these numbers as constants: ``numbers[at.LOSS]`` costs no more than a field of
an object would, and arrays of one type compile faster and are stored as they are.

Matrices have a row for each output and a column for each column of the data; column 0 is that of
the intercept.
"""

# How weights are computed: from sums of gradients by columns or by entries (:eq:`mirror-columns`),
# or by steps by feature (:eq:`feature-steps`).
COLUMNS, ENTRIES, FEATURES = 0, 1, 2
# Step sizes.
NONE, FIXED, ANYTIME, ADAPTIVE = 0, 1, 2, 3
# What a sample has: a class label, the target of one task, or targets for all outputs.
LABELS, TASKS, TARGETS = 0, 1, 2

# Origins of inputs: zero, the mean of each column, or the mean of marked columns only, whose value
# is unknown if a sample does not have them.
ZERO, MEANS, MARKED = 0, 1, 2

# Places of ``codes``, whole numbers: how weights are computed, the rule for steps, what a sample
# has; whether there are units, an intercept, an average, and a tree of sums; the number of outputs;
# and the origin of inputs.
KIND, RULE, MODE, SCALED, INTERCEPT, AVERAGED, SIZED, OUTPUTS, ORIGIN = range(9)
N_CODES = 9
# Places of ``constants``: the dual exponent p, the plan's rate, the radius of the ball, the strong
# convexity beta of the norm, and the derivatives that count as zero (``Plan.quiet``).
POWER, RATE, RADIUS, CONVEXITY, QUIET = range(5)
# Places of ``numbers``, the account of a learner. Samples seen, mistakes and losses; the sum over
# the rounds of the weights' common factor; the sum of rate |v|^2 / (2 beta) and of |v|^2 over the
# gradients v, and the first |v|^2 that is not zero; the unit of the sums; the largest norms of a
# gradient and of a sample; the last rate; the sum of the inputs' magnitudes (for learners by blocks
# the number of steps); the samples learned from; the sum of <v, w>; and the weight of all samples.
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
# gradients, the mean, whether it is the origin, the weight of samples that had a value, and that
# spoke of the column at all, and the weight of all samples when the unit last grew.
TOP, INVERSE, FACTOR, SEEN, ENERGY, MEAN, MARK, KNOWN, PRESENT, GREW = range(10)
N_COLUMN = 10
# Rows of ``outputs``: the largest derivative and target, whether there was one, the weight of
# targets seen, their mean, what moving means have added to the intercept (over the rate), and the
# sum of that over the rounds.
STEEPEST, FARTHEST, SEEN_BEFORE, HEARD, BASE, OFFSET, OFFSETS = range(7)
N_OUTPUTS = 7
# Rows of ``index``: columns of a sample, columns whose units grow, and the place of the loop.
I_ENTRIES, I_GROWN, I_PLACE = range(3)
N_INDEX = 3
# Places of that row: the sample and its part to go on with, and what the loop waits for. It stops
# for work that is rare, which is then not compiled as a part of it: sums that have outgrown their
# unit, and a clock that has run long. Then the label and the mistakes of a row that is learned from
# by itself.
SAMPLE, TURN, EVENT, LABEL, MISSED = range(5)
OUTGROWN, LATE = 1, 2
# Rows of the scratch space: inputs times factors or step sizes, sizes of columns, their powers, two
# rows for computing powers, the sample as given, its inputs, and those inputs that are not zero. By
# output the scores, the derivatives, and the products of weights and inputs. Then the weight and
# the loss of a row that is learned from by itself.
(
    S_PART,
    S_SIZE,
    S_POWER,
    S_HELD,
    S_OTHER,
    S_RAW,
    S_VALUE,
    S_PACKED,
    S_SCORES,
    S_RESIDUAL,
    S_PRODUCTS,
    S_SINGLE,
) = range(12)
N_SCRATCH = 12
