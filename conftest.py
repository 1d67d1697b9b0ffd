"""Settings shared by the tests and the doctests."""

import os

# No window system is needed, or waited for, when a test draws something.
os.environ.setdefault("MPLBACKEND", "Agg")
