"""Pools that are small enough to be looked through, and count what they are asked."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from mixnorm._array import namespace, to_numpy
from mixnorm.pools import PreparedPool


class SmallPool(PreparedPool):
    """Columns and products of two, all of them computed: the slowest pool, and the plainest.

    ``calls`` has the arguments of every scan.
    """

    tells_inputs = False

    def __init__(self, X, prices=None, linear=True):
        xp = namespace(X)
        d = X.shape[1]
        atoms = [(i, j) for i, j in combinations_with_replacement(range(d), 2) if i != j]
        self.atoms = [(i,) for i in range(d)] * linear + atoms
        rows = [X[:, atom[0]] * (X[:, atom[1]] if len(atom) == 2 else 1.0) for atom in self.atoms]
        self.rows = {
            atom: row[None, :] / xp.max(xp.abs(row))
            for atom, row in zip(self.atoms, rows, strict=True)
        }
        self.prices = dict(zip(self.atoms, prices, strict=True)) if prices is not None else None
        self.calls = []

    def scores(self, residual, rule):
        norms = {}
        for atom, row in self.rows.items():
            slope = to_numpy(row @ residual)
            norms[atom] = float(np.abs(slope).sum() if rule == "l1" else np.sqrt((slope**2).sum()))
        return norms

    def top(self, residual, rule, m, exclude, inputs=None, budget=None):
        self.calls.append({"m": m, "exclude": exclude, "inputs": inputs, "budget": budget})
        scores = self.scores(residual, rule)
        left = [atom for atom in self.atoms if atom not in exclude]
        if inputs is not None:
            left = [atom for atom in left if set(atom) <= inputs]
        if budget is not None:
            left = [atom for atom in left if self.prices[atom] <= budget]
        worth = {
            atom: scores[atom] / (self.prices[atom] ** 0.5 if self.prices else 1.0) for atom in left
        }
        return [(atom, scores[atom]) for atom in sorted(left, key=worth.get, reverse=True)[:m]]

    def columns(self, atom):
        return self.rows[atom]


class Products(SmallPool):
    """A pool that tells which columns its atoms read."""

    tells_inputs = True

    def inputs(self, atom):
        return frozenset(atom)


class Priced(Products):
    """A pool with prices."""

    priced = True

    def price(self, atom):
        return self.prices[atom]


class Varied(SmallPool):
    """A pool with a shortlist of its own: the best atom of every first column."""

    def shortlist(self, residual, rule, m, exclude):
        self.calls.append({"shortlist": m})
        found, columns = [], set()
        for atom, score in super().top(residual, rule, len(self.atoms), exclude):
            if atom[0] not in columns:
                columns.add(atom[0])
                found.append((atom, score))
        return found[:m]


@pytest.fixture(scope="session")
def pools():
    """The small pools by name."""
    return {"plain": SmallPool, "products": Products, "priced": Priced, "varied": Varied}
