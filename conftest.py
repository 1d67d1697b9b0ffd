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
    """Look for no garbage among the millions of objects that collection makes and that last.

    Else collection is slower, and so is every test that makes many objects for a while, or calls
    ``gc.collect``.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Look for examples only in files that have some."""
    collectors = yield
    if b">>>" in file_path.read_bytes():
        return collectors
    return [one for one in collectors if not isinstance(one, DoctestModule)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each worker whole files, so that few fixtures and compiled loops are made twice."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
