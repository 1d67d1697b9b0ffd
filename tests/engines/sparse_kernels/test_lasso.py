"""One block of the l1 refit."""

import numpy as np

from mixnorm.engines.sparse_kernels import block_minimiser


def test_block_minimiser():
    rng = np.random.default_rng(0)
    for _ in range(20):
        z, bends = rng.standard_normal((4, 2)), rng.uniform(0.0, 2.0, size=4)
        alpha = float(rng.uniform(0.01, 2.0 * np.linalg.norm(z)))
        found = block_minimiser(z, bends, alpha)
        if alpha >= np.linalg.norm(z):
            assert not np.any(found)
            continue
        slope = bends[:, None] * found - z + alpha * found / np.linalg.norm(found)
        np.testing.assert_allclose(slope, 0.0, atol=1e-9)
