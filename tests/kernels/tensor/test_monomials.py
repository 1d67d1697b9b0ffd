"""Monomials of several variables."""

import math

import numpy as np
import pytest

from mixnorm.kernels.tensor.monomials import MonomialList, Monomials


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


def test_a_list_of_monomials_has_magnitudes_and_signs():
    exponents = np.array([[0, 0], [1, 0], [2, 1], [3, 2], [0, 4], [5, 3]])
    X = np.array([[-1.5, -0.5], [2.0, -1.0], [0.0, 3.0], [0.5, 0.0]])
    made = MonomialList(exponents)
    wanted = np.prod(X[None] ** exponents[:, None], axis=2)
    np.testing.assert_allclose(made.signs(X) * np.exp(made.log_sizes(X)), wanted, rtol=1e-13)
    assert set(made.signs(X).ravel()) == {-1.0, 1.0}
