import threading

import pytest

from mixnorm.data.blocks.executors import ThreadExecutor, as_executor, count_processors


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_results_come_in_order(n_workers):
    executor = ThreadExecutor(n_workers)
    assert list(executor.run(lambda task: task * 10, range(9))) == list(range(0, 90, 10))
    assert list(executor.run(str, [])) == []


def test_tasks_run_at_the_same_time():
    meeting = threading.Barrier(2, timeout=30)
    assert len(list(ThreadExecutor(2).run(lambda task: meeting.wait(), range(2)))) == 2


@pytest.mark.parametrize("n_workers", [1, 2])
def test_an_error_ends_the_tasks_that_have_not_begun(n_workers):
    begun = []

    def work(task):
        begun.append(task)
        if task == 1:
            raise ValueError("bad rows")
        return task

    with pytest.raises(ValueError, match="bad rows"):
        list(ThreadExecutor(n_workers).run(work, range(1000)))
    assert len(begun) < 1000


def test_linear_algebra_uses_one_thread():
    from threadpoolctl import threadpool_info

    def count_threads(task):
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    for n_workers in (1, 2):
        for counts in ThreadExecutor(n_workers).run(count_threads, range(2)):
            assert set(counts) <= {1}


def test_an_executor_is_found_for_what_users_give():
    assert as_executor(3).n_workers == 3
    assert as_executor(None).n_workers == count_processors() >= 1
    executor = ThreadExecutor(2)
    assert as_executor(executor) is executor
    with pytest.raises(TypeError, match=r"executor=1.5 must be a number of threads"):
        as_executor(1.5)
    with pytest.raises(ValueError, match="executor=0 must be at least 1"):
        as_executor(0)
    with pytest.raises(ValueError, match="is not the address of a Dask scheduler"):
        as_executor("cluster")
