"""Learning with few shared features.

Names are resolved on first use, so that ``import mixnorm`` costs next to
nothing and imports neither NumPy nor scikit-learn. ``__init__.pyi`` lists them.

Examples
--------
>>> import mixnorm
>>> "ShareBoostClassifier" in dir(mixnorm)
True
"""

from mixnorm._lazy import attach
from mixnorm._version import __version__  # noqa: F401  # listed in the stub

__getattr__, __dir__, __all__ = attach(__name__)
