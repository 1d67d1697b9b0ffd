"""What kernels have in common."""

import math

import numpy as np
import pytest

from mixnorm.kernels import kernel_geometry


def rows(n, d):
    return np.random.default_rng(0).standard_normal((n, d))


def test_orthogonal_kernels():
    basis = np.linalg.qr(rows(12, 6))[0]
    factors = [basis[:, :2] * 3.0, basis[:, 2:5] * 2.0, basis[:, 5:]]
    found = kernel_geometry(factors)
    assert found.correlation == pytest.approx(0.0, abs=1e-12)
    assert found.ranks == (2, 3, 1)
    assert found.smallest == pytest.approx(1.0 / 12.0)
    low, high = found.gamma
    assert low == pytest.approx(12.0)
    # Proposition 2 with no correlation: sqrt(d) over the smallest eigenvalue.
    assert high == pytest.approx(math.sqrt(3.0) * 12.0)
    assert found.largest == pytest.approx(9.0 / 12.0)
    assert 1.0 - found.rate == pytest.approx(1.0 / (8.0 * high**2))
    larger = kernel_geometry([2.0 * phi for phi in factors])
    # Kernels of another size are the same to steps of the best length.
    assert 1.0 - larger.rate == pytest.approx(1.0 / (8.0 * (high / 4.0 * 3.0) ** 2))


def test_one_direction():
    """Gamma is one over the only eigenvalue, from below and above."""
    found = kernel_geometry([np.full((4, 1), 3.0)])
    assert found.largest == pytest.approx(9.0)
    assert found.gamma == pytest.approx((1.0 / 9.0, 1.0 / 9.0))


@pytest.mark.parametrize("seed", range(5))
def test_gamma_is_between(seed):
    """No vectors break the inequality with the upper estimate, some reach the lower one."""
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((15, 3)) for _ in range(3)]
    found = kernel_geometry(factors)
    low, high = found.gamma
    worst = 0.0
    for _ in range(200):
        coefs = [rng.standard_normal(3) for _ in range(3)]
        spans = [np.linalg.qr(phi)[0] @ coef for phi, coef in zip(factors, coefs, strict=True)]
        made = sum(phi @ (phi.T @ a) / 15.0 for phi, a in zip(factors, spans, strict=True))
        worst = max(worst, sum(map(np.linalg.norm, spans)) / np.linalg.norm(made))
    assert worst <= high
    assert low <= high
    cosines = [
        np.linalg.norm(np.linalg.qr(one)[0].T @ np.linalg.qr(other)[0], 2)
        for i, one in enumerate(factors)
        for other in factors[i + 1 :]
    ]
    assert found.correlation == pytest.approx(max(cosines))


def test_kernels_that_share_a_direction_have_no_rate():
    phi = rows(10, 2)
    same = kernel_geometry([phi, phi[:, :1]])
    assert same.correlation == pytest.approx(1.0)
    assert same.gamma == (math.inf, math.inf)
    assert same.rate == 1.0
    assert kernel_geometry([np.eye(4), np.eye(4)]).rate == 1.0
    with pytest.raises(ValueError, match="no kernels"):
        kernel_geometry([])
    for wrong in (np.ones(4), np.full((4, 1), np.nan), np.ones((4, 0))):
        with pytest.raises(ValueError, match="a factor has shape"):
            kernel_geometry([wrong])
    with pytest.raises(ValueError, match="factor 1 has 3 rows"):
        kernel_geometry([np.ones((4, 1)), np.ones((3, 1))])
