"""Settings shared by the tests and the doctests."""

import gc
import os

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

# No window system is needed, or waited for, when a test draws something.
os.environ.setdefault("MPLBACKEND", "Agg")

# A busy machine is no reason to fail: the time of one example is not what is tested.
settings.register_profile("mixnorm", deadline=None)
settings.load_profile("mixnorm")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Switch the garbage collector off during collection, and freeze what collection has made.

    Collection makes millions of objects that stay. Without this, every later ``gc.collect`` would
    walk through all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Collect doctests only from files that contain an example."""
    collectors = yield
    if b">>>" in file_path.read_bytes():
        return collectors
    return [one for one in collectors if not isinstance(one, DoctestModule)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Start each worker on neighbouring tests, so that few fixtures are made in both workers."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
