"""Compiled loops of joint kernel machines: coordinate ascent over the rows of the dual variables.

Rows ``A_i`` of the dual variables have one entry per class, and sum to zero. The label's entry is
at most ``cap_i`` and all others are at most zero (:eq:`feasible-rows`). With ``squared`` the loss
is ``cap * hinge**2`` instead of ``cap * hinge``, and the label's entry has no bound but costs its
square over ``4 cap``. Scores are kept as ``F`` of shape ``(n_classes, n_rows)``, so that the update
of a class runs along memory.

Loops are compiled with ``error_model="numpy"``: a division by zero gives infinity or NaN, as the
formulas expect, and no check slows the loop. ``contract`` allows fused multiplications and
additions; sums keep their order unless ``reassoc`` is there too.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mixnorm._compile import ENTRY, INNER

entry = njit(**ENTRY, cache=True, error_model="numpy")
inner = njit(**INNER, cache=True, error_model="numpy")
# May use fused multiplications and additions.
fused = njit(**INNER, cache=True, error_model="numpy", fastmath={"contract"})


@inner
def compute_row_gap(scores, duals, y, cap, squared):  # type: ignore[no-untyped-def]
    """Return what a row adds to the duality gap; it is not negative (:eq:`row-gap`)."""
    top, linear = scores[y], 0.0
    for k in range(scores.shape[0]):
        linear += scores[k] * duals[k]
        if k != y and scores[k] + 1.0 > top:
            top = scores[k] + 1.0
    hinge, own = top - scores[y], duals[y]
    if squared:
        # As a square and the rest of the gap of the hinge: both vanish at the optimum, where the
        # terms of a plain difference would cancel.
        half = 0.5 * own - cap * hinge
        rest = half * half / cap + (own * hinge + linear - own)
        return float(rest) if cap > 0.0 else 0.0
    return float(cap * hinge + linear - own)


@inner
def project(V, y, cap, shrink, out):  # type: ignore[no-untyped-def]
    """Write the nearest allowed row to ``V`` into ``out``, whose first entries serve to sort.

    With a multiplier ``t`` for the sum, entries are ``min(0, V_k - t)``, and the label's is
    ``min(cap, shrink * (V_y - t))`` (:eq:`row-projection`). The sum falls as ``t`` grows, and is
    linear between the entries. So ``t`` is found by adding entries in increasing order, until the
    next one would be positive at the root.
    """
    n_classes = V.shape[0]
    count = 0
    for k in range(n_classes):  # the entries but the label's, smallest first
        if k == y:
            continue
        place = count
        while place > 0 and out[place - 1] > V[k]:  # one place less each time
            out[place] = out[place - 1]
            place -= 1
        out[place] = V[k]
        count += 1
    # The label's entry is at least zero, so that ``t`` is at most ``V_y``: the start, with no entry
    # below ``t``, is a row of zeros.
    level, total = V[y], 0.0
    for j in range(count):
        total += out[j]
        t = (shrink * V[y] + total) / (j + 1 + shrink)
        if out[j] >= t:
            break
        level = t
    # Above its cap the label's entry is the cap, and the others share out minus the cap.
    if shrink * (V[y] - level) > cap:
        total = 0.0
        for j in range(count):
            total += out[j]
            t = (cap + total) / (j + 1)
            if j > 0 and out[j] >= t:  # the smallest entry always takes a part
                break
            level = t
    # The label's entry last, as minus the sum of the others: rows sum to zero without rounding.
    total = 0.0
    for k in range(n_classes):
        if k != y:
            entry = V[k] - level
            out[k] = entry if entry < 0.0 else 0.0
            total += out[k]
    out[y] = -total


@entry
def project_rows(V, labels, caps, squared, sigma):  # type: ignore[no-untyped-def]
    """Replace rows by the nearest allowed ones (:eq:`proximal-machine`).

    With ``squared`` the label's entry costs ``sigma * entry**2 / (4 cap)`` beside the distance.
    """
    out = np.empty(V.shape[1])
    for i in range(V.shape[0]):
        if squared:  # the cost shrinks the label's entry, which then has no cap
            project(V[i], labels[i], np.inf, 1.0 / (1.0 + 0.5 * sigma / caps[i]), out)
        else:
            project(V[i], labels[i], caps[i], 1.0, out)
        for k in range(V.shape[1]):
            V[i, k] = out[k]


@entry
def compute_gaps(F, A, labels, caps, squared, out):  # type: ignore[no-untyped-def]
    """Write each row's part of the gap into ``out``; return their sum."""
    scores = np.empty(F.shape[0])
    total = 0.0
    for i in range(F.shape[1]):
        for k in range(F.shape[0]):
            scores[k] = F[k, i]
        out[i] = compute_row_gap(scores, A[i], labels[i], caps[i], squared)
        total += out[i]
    return total


@entry
def compute_hinges(F, labels, out):  # type: ignore[no-untyped-def]
    """Write the hinge loss of every row into ``out``."""
    for i in range(F.shape[1]):
        own = F[labels[i], i]
        top = own
        for k in range(F.shape[0]):
            if k != labels[i] and F[k, i] + 1.0 > top:
                top = F[k, i] + 1.0
        out[i] = top - own


@fused
def add_scaled(target, row, factor):  # type: ignore[no-untyped-def]
    """Add a row times a factor to a vector."""
    for t in range(target.shape[0]):
        target[t] += factor * row[t]


@inner
def solve_flat_row(scores, y, cap, squared, out):  # type: ignore[no-untyped-def]
    """Write the best row where it changes no score: all of it against the worst rival.

    A zero on the diagonal means a row of zeros, so that the dual value is linear in the row.
    """
    rival = -1
    for k in range(scores.shape[0]):
        out[k] = 0.0
        if k != y and (rival < 0 or scores[k] > scores[rival]):
            rival = k
    hinge = 1.0 + scores[rival] - scores[y]
    if hinge > 0.0:
        out[y] = 2.0 * cap * hinge if squared else cap
        out[rival] = -out[y]


@inner
def improve_row(scores, duals, y, cap, squared, curvature, V, out):  # type: ignore[no-untyped-def]
    """Write the best row, all others being as they are, into ``out`` (:eq:`row-projection`)."""
    if not curvature > 0.0:
        solve_flat_row(scores, y, cap, squared, out)
        return
    # The dual value is a parabola of the row, with the same curvature in every direction: its best
    # row is the projection of the free maximum.
    for k in range(scores.shape[0]):
        V[k] = duals[k] - scores[k] / curvature
    V[y] += 1.0 / curvature
    if squared:
        project(V, y, np.inf, curvature / (curvature + 0.5 / cap), out)
    else:
        project(V, y, cap, 1.0, out)


@entry
def sweep_rows(K, F, A, labels, caps, squared, order, threshold):  # type: ignore[no-untyped-def]
    """Improve the rows in ``order`` whose part of the gap exceeds ``threshold``, one by one."""
    n_classes = F.shape[0]
    scores, V, new = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    updates = 0
    for i in order:
        for k in range(n_classes):
            scores[k] = F[k, i]
        # The gap is computed again, because earlier rows of the sweep may have closed it.
        if compute_row_gap(scores, A[i], labels[i], caps[i], squared) <= threshold:
            continue
        improve_row(scores, A[i], labels[i], caps[i], squared, float(K[i, i]), V, new)
        updates += 1
        for k in range(n_classes):
            change = new[k] - A[i, k]
            if change != 0.0:  # most entries are zero and stay so
                A[i, k] = new[k]
                # Column i, which is row i of the symmetric matrix: one piece of memory.
                add_scaled(F[k], K[i], change)
    return updates


@entry
def choose_rows(parts, threshold, seed, order):  # type: ignore[no-untyped-def]
    """Write the rows whose part exceeds the threshold, in random order.

    Returns their number, and the seed of the next time. The generator is one of its own: the random
    numbers of compiled code have one state for a thread, and a fit would depend on what the thread
    did before.
    """
    count = 0
    for i in range(parts.shape[0]):
        if parts[i] > threshold:
            order[count] = i
            count += 1
    state = np.uint64(seed)
    for i in range(count - 1, 0, -1):
        # Knuth's multiplier; the high bits are those that look random.
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = (state >> np.uint64(33)) % np.uint64(i + 1)
        order[i], order[j] = order[j], order[i]
    return count, float(state >> np.uint64(1))


@entry
def ascend(K, F, A, labels, caps, squared, goal, passes, selective, seed, at_once):  # type: ignore[no-untyped-def]
    """Pass over the rows until their gap is at most ``goal``, or for so many passes.

    A pass is over the rows whose part of the gap exceeds the mean, times ``selective``, in random
    order. Returns how many rows were changed, and the seed of the next time. Where that takes long,
    this function is run by Python (``py_func``), and a compiled sweep has ``at_once`` rows.
    """
    n = A.shape[0]
    parts, order = np.empty(n), np.empty(n, np.int64)
    updates = 0
    for _ in range(passes):
        total = compute_gaps(F, A, labels, caps, squared, parts)
        if total <= goal:
            break
        threshold = selective * total / n
        # In random order: a fixed one can make coordinate ascent very slow on some matrices.
        count, seed = choose_rows(parts, threshold, seed, order)
        for begin in range(0, count, at_once):
            some = order[begin : min(begin + at_once, count)]
            updates += sweep_rows(K, F, A, labels, caps, squared, some, threshold)
    return updates, seed


@njit(**INNER, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def dot(left, right):  # type: ignore[no-untyped-def]
    """Return the inner product of two vectors.

    With ``reassoc``, which changes the order of the sum: the loop then runs several lanes at once.
    """
    total = left.dtype.type(0.0)
    for t in range(left.shape[0]):
        total += left[t] * right[t]
    return float(total)


@fused
def add_weighted(target, row, weights, factor):  # type: ignore[no-untyped-def]
    """Add a row times weights and a factor to a vector."""
    scale = target.dtype.type(factor)
    for t in range(target.shape[0]):
        target[t] += scale * weights[t] * row[t]


@entry
def sweep_factors(X, weights, squares, U, rest, A, labels, caps, squared, order, threshold):  # type: ignore[no-untyped-def]
    """Improve rows of a machine whose kernel is ``X diag(weights) X'``, one by one.

    ``U`` of shape ``(n_classes, n_columns)`` is ``weights * (A' X)``, and ``squares`` the diagonal
    of the kernel. ``rest``, of shape ``(n_classes, n_rows)``, is added to all scores.
    """
    n_classes = U.shape[0]
    scores, V, new = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    updates = 0
    for i in order:
        for k in range(n_classes):
            scores[k] = rest[k, i] + dot(U[k], X[i])  # costs a row of columns, not one of rows
        gap = compute_row_gap(scores, A[i], labels[i], caps[i], squared)
        if gap <= threshold:  # earlier rows of the sweep may have closed it
            continue
        improve_row(scores, A[i], labels[i], caps[i], squared, squares[i], V, new)
        updates += 1
        for k in range(n_classes):
            change = new[k] - A[i, k]
            if change != 0.0:
                A[i, k] = new[k]
                add_weighted(U[k], X[i], weights, change)
    return updates


@entry
def count_directions(A, labels, caps, squared):  # type: ignore[no-untyped-def]
    """Return in how many directions rows can move without a bound in the way.

    With ``k`` free entries there are ``k - 1``, because a row sums to zero.
    """
    total = 0
    for i in range(A.shape[0]):
        free = 0
        for k in range(A.shape[1]):
            if is_free(A[i, k], k == labels[i], caps[i], squared):
                free += 1
        if free > 1:
            total += free - 1
    return total


@inner
def is_free(dual, own, cap, squared):  # type: ignore[no-untyped-def]
    """Whether an entry is not at its bound, but for rounding."""
    # Relative to the cap, which is the unit of dual variables.
    return squared or dual < cap * (1.0 - 1e-12) if own else dual < -1e-12 * cap


@entry
def find_directions(A, labels, caps, squared, sigma, rows, basis):  # type: ignore[no-untyped-def]
    """Write vectors whose outer products sum to how ``project_rows`` answers to a change.

    They span the directions in which rows can move (:eq:`newton-direction`); ``rows`` says which
    row each is of. For the hinge loss they are orthonormal, and with ``squared`` the label's entry
    moves less. The ``j``-th vector of a row is that of Helmert: equal parts in the first ``j`` free
    entries (but for the label's), and minus their sum in the next. It is orthogonal to the earlier
    ones by itself.
    """
    free = np.empty(A.shape[1], dtype=np.int64)
    place = 0
    for i in range(A.shape[0]):
        count = 0
        for k in range(A.shape[1]):
            if is_free(A[i, k], k == labels[i], caps[i], squared):
                free[count] = k
                count += 1
        own = 1.0 / np.sqrt(1.0 + 0.5 * sigma / caps[i]) if squared else 1.0
        square = 0.0  # of the part before the j-th entry of the vector that is left out
        for j in range(1, count):
            before = own if free[j - 1] == labels[i] else 1.0
            square += before * before  # the squares of the first j parts
            last = own if free[j] == labels[i] else 1.0
            size = 1.0 / np.sqrt(square * (square + last * last))
            for u in range(j):
                part = own if free[u] == labels[i] else 1.0
                basis[place, free[u]] = part * part * last * size
            basis[place, free[j]] = -square * last * size
            rows[place] = i
            place += 1


@njit(**ENTRY, cache=True, error_model="numpy", fastmath={"contract"})
def build_newton_system(K, rows, basis, sigma, out):  # type: ignore[no-untyped-def]
    """Write the lower half of ``I + sigma B'KB`` into ``out``, where ``B`` has the vectors."""
    n_classes = basis.shape[1]
    for i in range(rows.shape[0]):
        row = K[rows[i]]
        for j in range(i + 1):
            # ``B'KB`` couples two rows by the kernel, times the product of their directions.
            total = 0.0
            for k in range(n_classes):
                total += basis[i, k] * basis[j, k]
            out[i, j] = sigma * row[rows[j]] * total
        out[i, i] += 1.0
