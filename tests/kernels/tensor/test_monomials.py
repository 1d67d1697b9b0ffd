"""Monomials of several variables."""

import math

import numpy as np
import pytest

from mixnorm.kernels.tensor.monomials import Monomials


@pytest.mark.parametrize(("variables", "degree"), [(1, 3), (3, 1), (4, 3), (2, 5)])
def test_monomials(variables, degree):
    made = Monomials.of_degree(variables, degree)
    X = np.random.default_rng(0).standard_normal((5, variables))
    values = made.values(X)
    seen = set()
    for place, row in enumerate(values):
        exponents = made.exponents(place)
        assert exponents.sum() == degree
        seen.add(tuple(exponents))
        np.testing.assert_allclose(row, np.prod(X**exponents, axis=1))
        ways = math.factorial(degree) / math.prod(map(math.factorial, exponents))
        assert made.coefficients[place] == pytest.approx(ways)
    assert len(seen) == len(made) == math.comb(variables + degree - 1, degree)
