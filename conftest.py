"""Settings shared by the tests and the doctests."""

import os

from hypothesis import settings

# No window system is needed, or waited for, when a test draws something.
os.environ.setdefault("MPLBACKEND", "Agg")

# A busy machine is no reason to fail: the time of one example is not what is tested.
settings.register_profile("mixnorm", deadline=None)
settings.load_profile("mixnorm")
