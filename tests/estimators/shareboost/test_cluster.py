"""ShareBoost on real Dask workers, some of which are killed in the middle of a fit."""

import os
import signal

import numpy as np
import pytest

from mixnorm import ShareBoostClassifier
from mixnorm.data import from_arrays

distributed = pytest.importorskip("distributed")

pytestmark = [
    # Sockets of workers that are killed are not closed.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 9)).astype(np.float32)
    return X, np.argmax(X[:, :3] + 0.5 * rng.standard_normal((400, 3)), axis=1)


def fit(rows, executor, on_progress=None):
    table = from_arrays(*rows, block_rows=40, executor=executor)
    table.on_progress = on_progress
    return ShareBoostClassifier(3).fit(table)


@pytest.fixture(scope="module")
def alone(rows):
    return fit(rows, 1)


def test_workers_find_the_same_bits(client, rows, alone):
    together = fit(rows, client)
    assert np.array_equal(together.coef_, alone.coef_)
    assert np.array_equal(together.intercept_, alone.intercept_)


@pytest.mark.skipif(os.name != "posix", reason="kills processes by a signal")
@pytest.mark.parametrize("moment", ["scan", "refit"])
def test_a_worker_is_killed(moment, client, rows, alone):
    """In the survey, which reads all columns, or when the weights of a round are fitted."""
    begun, killed = [], []

    def kill(done, whole):
        begun.append(done)
        # A sum ends when all blocks are done; the first is the survey.
        sums = sum(one == whole for one in begun)
        if not killed and done < whole and sums == (0 if moment == "scan" else 5):
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    model = fit(rows, client, kill)
    assert killed
    assert np.array_equal(model.coef_, alone.coef_)
    client.wait_for_workers(2, timeout=60)  # its nanny has made another
