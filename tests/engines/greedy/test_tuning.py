"""Tuning as the engine does it, with a pool that says what its atoms become.

Patches, whose templates are adjusted, have tests/pools/patches/test_tuning.py.
"""

import numpy as np
from sklearn.datasets import load_iris

from mixnorm.engines.greedy import select
from mixnorm.losses import MarginSoftmax
from mixnorm.pools import Columns

HIDDEN = 4  # a column that is never offered: a mixture of a feature and the answer


class Adjustable:
    """The four features of iris, the last of which may become the hidden one."""

    def __init__(self, X, weight, ratio):
        self._pool = Columns().prepare(X, weight=weight, fit_intercept=True)
        self._ratio, self.lengths = ratio, []

    def __getattr__(self, name):
        return getattr(self._pool, name)

    def top(self, residual, rule, m, exclude, inputs=None):
        return self._pool.top(residual, rule, m, exclude | {HIDDEN}, inputs)

    def adjust(self, atoms, slopes, bends):
        self._atoms, self.slope = atoms, 1e-3
        assert slopes.shape == bends.shape == (len(atoms), 150)
        return self

    def move(self, length):
        self.lengths.append(length)
        if not length:
            return [(atom, 1.0) for atom in self._atoms]
        return [(HIDDEN if atom in (3, HIDDEN) else atom, self._ratio) for atom in self._atoms]


def tuned(sweeps, ratio=1.0):
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, X[:, 3] + y])
    weight = np.full(len(X), 1 / len(X))
    pool, loss = Adjustable(X, weight, ratio), MarginSoftmax()
    options = {"weight": weight, "n_outputs": 3, "n_atoms": 3, "alpha": 1e-3, "tune": sweeps}
    return select(pool, loss, loss.encode(y, 3, weight), **options), pool.lengths


def test_the_last_model_is_replaced_by_a_better_one():
    plain, path, lengths = tuned(0)[0], *tuned(4)
    for got, expected in zip(path.rounds[:-1], plain.rounds[:-1], strict=True):
        np.testing.assert_array_equal(got.weights, expected.weights)
    before, after = plain.rounds[-1], path.rounds[-1]
    assert 3 in before.support
    assert set(after.support) == {HIDDEN, *before.support} - {3}
    assert after.objective < 0.9 * before.objective
    assert lengths[0] < lengths[1]  # longer after a success, shorter when nothing more is won
    assert lengths[-1] < lengths[1]


def test_steps_that_do_not_help_are_not_taken():
    plain, path, lengths = tuned(0)[0], *tuned(3, ratio=-1.0)
    assert lengths[0] > lengths[1] > lengths[-2] > 0.0
    assert lengths[-1] == 0.0  # the pool is told to go on with what it had
    assert path.rounds[-1].support == plain.rounds[-1].support
    np.testing.assert_array_equal(path.rounds[-1].weights, plain.rounds[-1].weights)
