"""Real clusters: processes that die and hang."""

import asyncio
import functools
import os
import signal
import time

import numpy as np
import pytest

from mixnorm.data import ClusterExecutor, from_arrays, join_rows, read_parquet
from mixnorm.data.blocks.executors import as_executor
from mixnorm.data.blocks.remote import cluster as module
from mixnorm.data.blocks.remote.cluster import active_client, find_executor
from mixnorm.exceptions import TableError, WorkerError

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = [
    # Sockets of workers that are killed are not closed.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.fixture(scope="module")
def client():
    """A client, not the active one, of a cluster of one worker process."""
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=60,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def wait_until(condition):
    """Wait until a condition holds; fail if it does not within a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def scale(client, count):
    """Give the cluster so many workers."""
    client.cluster.scale(count)
    wait_until(lambda: len(client.nthreads()) == count)
    find_executor(client).look_again()  # it remembers the workers for half a second


@pytest.fixture(scope="module")
def tables(arrays, parquet):
    """Functions that make tables of all kinds for an executor."""
    import pandas as pd

    X, y, weight = arrays
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=weight)
    frame = dd.from_pandas(frame, npartitions=3)
    return {
        "parquet": functools.partial(read_parquet, parquet, "y", "w"),
        "arrays": functools.partial(from_arrays, X, y, weight),
        "columns": functools.partial(from_arrays, np.asfortranarray(X), y, weight),
        "dask arrays": functools.partial(
            from_arrays, da.from_array(X, chunks=(33, 3)), da.from_array(y, chunks=40), weight
        ),
        "dask frames": functools.partial(from_arrays, frame[list("abcd")], frame["y"], frame["w"]),
    }


def test_sums_do_not_depend_on_workers(client, tables, add_products, read_rows, arrays):
    expected = {
        kind: add_products(make(block_rows=13, executor=1)) for kind, make in tables.items()
    }
    for count in (1, 2, 3):
        scale(client, count)
        assert find_executor(client).n_workers == count
        for kind, make in tables.items():
            table = make(block_rows=13, executor=client)
            assert all(map(np.array_equal, add_products(table), expected[kind]))
    for make in tables.values():
        columns = np.array([3, 1])
        X, y, weight = read_rows(make(block_rows=40, executor=client), columns)
        assert np.array_equal(X, arrays[0][:, columns])
        assert np.array_equal(y, arrays[1])
        assert np.array_equal(weight, arrays[2])
    scale(client, 2)


def misbehave(flag, number, sign):
    """Return a function that sends a signal to its process, once, in the block of a number."""

    def multiply(block):
        if block.number == number:
            try:
                os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), sign)
        return block.X.T @ block.X

    return multiply


@pytest.mark.parametrize("allowed", [3, 0])
def test_a_worker_that_is_killed_costs_time_alone(client, tables, tmp_path, allowed):
    # With 0, the scheduler gives a task up at once, and it is handed out again.
    client.run_on_scheduler(set_failures, count=allowed)
    work = misbehave(str(tmp_path / "flag"), 5, signal.SIGKILL)
    table = tables["parquet"](block_rows=7, executor=client)
    found = table.sum(work, columns=slice(None))
    assert (tmp_path / "flag").exists()
    same = tables["parquet"](block_rows=7, executor=1).sum(work, columns=slice(None))
    assert np.array_equal(found, same)
    client.run_on_scheduler(set_failures, count=3)


def set_failures(dask_scheduler, count):
    dask_scheduler.allowed_failures = count


set_failures.__module__ = "__main__"  # the scheduler cannot import the tests


@pytest.mark.parametrize("count", [2, 1])
def test_a_worker_that_hangs_is_replaced(client, tables, tmp_path, count):
    scale(client, count)
    before = set(client.nthreads())
    work = misbehave(str(tmp_path / "flag"), 5, signal.SIGSTOP)
    table = tables["parquet"](block_rows=7, executor=ClusterExecutor(client, timeout=4))
    found = table.sum(work, columns=slice(None))
    same = tables["parquet"](block_rows=7, executor=1).sum(work, columns=slice(None))
    assert np.array_equal(found, same)
    # It was restarted, and has another address.
    wait_until(lambda: before - set(client.nthreads()))


def test_a_task_that_kills_all_workers_is_given_up(client, tables, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ATTEMPTS", 1)
    client.run_on_scheduler(set_failures, count=0)
    work = misbehave(str(tmp_path / "flag"), 0, signal.SIGKILL)
    table = tables["parquet"](block_rows=7, executor=client)
    with pytest.raises(WorkerError, match="1 workers died while they computed it, the last at tcp"):
        table.sum(work, columns=slice(None))
    client.run_on_scheduler(set_failures, count=3)


def test_errors_of_the_data_are_those_of_one_process(client, tmp_path, read_rows):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1.0, 2, None, 4], "y": list("abcd")}), path, row_group_size=2)
    messages = []
    for executor in (1, client):
        with pytest.raises(TableError) as error:
            read_rows(read_parquet(path, "y", block_rows=1, executor=executor))
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "row group 1: column 'x'" in messages[0]


def test_rows_are_kept_on_workers_and_forgotten(client, arrays):
    class Recipe:
        keys = (0, 2)

        def columns(self, keys):
            return np.array(keys)

        def make(self, X, keys):
            return np.ascontiguousarray(X.T)

    def holds(token):
        from mixnorm.data.blocks.kept import _ALL

        return token in _ALL

    def take_made(block):
        return block.made.T.copy()

    table = from_arrays(*arrays, block_rows=7, executor=client, memory=20_000)
    for _ in range(2):
        found = table.sum(take_made, recipe=Recipe(), combine=join_rows)
        assert np.array_equal(found, arrays[0][:, [0, 2]])
    token = table._token
    assert any(client.run(holds, token, on_error="ignore").values())
    table.forget()
    wait_until(lambda: not any(client.run(holds, token, on_error="ignore").values()))


def test_an_address_finds_the_cluster(client, tables, add_products):
    address = client.scheduler.address
    executor = as_executor(address)
    assert executor is as_executor(address)
    assert executor.n_workers >= 1
    add_products(tables["parquet"](executor=address))
    executor.client.close()
    with pytest.raises(ValueError, match="not the address of a Dask scheduler"):
        as_executor("localhost")


def test_an_asynchronous_client_is_an_error(client, tables):
    async def call():
        address = client.scheduler.address
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as other:
            table = tables["parquet"](executor=other)
            with pytest.raises(WorkerError, match="client is asynchronous"):
                table.sum(len)

    asyncio.run(call())


def test_a_client_that_is_closed_is_an_error(client, tables):
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    table = tables["parquet"](executor=other)
    other.close()
    with pytest.raises(WorkerError, match="client of the table is closed"):
        table.sum(len)


def test_the_active_client_is_taken(tables, add_products):
    assert active_client() is None
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=":0", silence_logs=60
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert active_client() is client
        table = tables["parquet"]()
        assert table.executor() is find_executor(client)
        # There is no worker yet.
        empty = tables["parquet"](executor=ClusterExecutor(client, timeout=0.2))
        with pytest.raises(WorkerError, match="has had no worker for 0.2 seconds"):
            add_products(empty)
        cluster.scale(1)
        expected = add_products(tables["parquet"](executor=1))
        assert all(map(np.array_equal, add_products(table), expected))


def test_a_scheduler_that_does_not_answer_is_an_error():
    with pytest.raises(WorkerError, match="No Dask scheduler answers at tcp://127.0.0.1:9"):
        module.connect("tcp://127.0.0.1:9", timeout=0.1)
