"""Data and kernels of the tests of learners with tensor kernels."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixnorm.kernels import (
    ExponentialTensorKernel,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
    TensorKernel,
)

KERNELS = [
    PolynomialTensorKernel(3),
    PowerSeriesTensorKernel((1.0, 1.0, 0.5)),
    ExponentialTensorKernel(),
]
REPRESENTATIONS = ["features", "tensor", "sampled", "low-rank"]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def table(n=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = 3.0 + 2.0 * rng.standard_normal((n, d))
    Z = (X - 3.0) / 2.0
    y = 7.0 + Z[:, 0] * Z[:, 1] + np.sin(Z[:, 2]) + 0.1 * rng.standard_normal(n)
    return X, y


def labels(n=60, seed=0):
    X, y = table(n, seed=seed)
    return X, np.array(["low", "mid", "top"])[np.digitize(y, np.quantile(y, [0.33, 0.67]))]


@dataclass
class Unlisted(TensorKernel):
    """One that tells nothing of its features."""

    finite = False

    def of_products(self, P, shift=0.0):
        return np.cosh(0.01 * P)
