"""Settings shared by the tests and the doctests."""

import gc
import os

from hypothesis import settings

# No window system is needed, or waited for, when a test draws something.
os.environ.setdefault("MPLBACKEND", "Agg")

# A busy machine is no reason to fail: the time of one example is not what is tested.
settings.register_profile("mixnorm", deadline=None)
settings.load_profile("mixnorm")

# Collecting makes millions of objects that last: looking for garbage among them takes a third of
# the time of collection, and half a second in each test that calls ``gc.collect``.
gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()
