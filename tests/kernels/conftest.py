"""Data that the tests of kernels share."""

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Small matrices gain nothing from threads, and on a busy machine they wait for them."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.fixture
def X():
    """Rows in clusters, some of them twice."""
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.standard_normal((4, 5))
    rows = centres[rng.integers(0, 4, size=60)] + 0.3 * rng.standard_normal((60, 5))
    rows[50:] = rows[:10]
    return rows


@pytest.fixture
def new():
    return 2.0 * np.random.default_rng(1).standard_normal((13, 5))


@pytest.fixture
def counts():
    """Sparse rows of small counts, with an empty row."""
    rng = np.random.default_rng(2)
    rows = rng.poisson(0.4, size=(40, 30)).astype(float)
    rows[7] = 0.0
    return sparse.csr_array(rows)
