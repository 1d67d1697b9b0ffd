"""Settings shared by the tests and the doctests."""

import functools
import gc
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

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
def pytest_runtest_protocol():
    """Freeze what a full garbage collection during a test has left; most of it stays.

    Compiling functions makes millions of objects that stay, too.
    """
    before = gc.get_stats()[2]["collections"]
    try:
        return (yield)
    finally:
        if gc.get_stats()[2]["collections"] > before:
            gc.freeze()


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


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """Let one worker compile a function that both need; the other then finds it in the cache."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None or os.name != "posix":
        return
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    folder = Path(tempfile.gettempdir()) / f"mixnorm-compile-{run}"
    folder.mkdir(exist_ok=True)
    compile_alone, held = Dispatcher.compile, set()

    @functools.wraps(compile_alone)
    def compile_in_turn(dispatcher, signature):
        name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
        # Workers take locks from callers to callees, and threads take numba's own lock first, so
        # that none waits for ever.
        with global_compiler_lock, _lock(folder / name, held):
            return compile_alone(dispatcher, signature)

    Dispatcher.compile = compile_in_turn


@contextmanager
def _lock(path, held):
    """Hold the lock of a file, unless this process has it already."""
    if path in held:
        yield
        return
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        held.add(path)
        try:
            yield
        finally:
            held.remove(path)
