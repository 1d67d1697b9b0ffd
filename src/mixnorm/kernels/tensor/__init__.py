"""Tensor kernels: functions of several rows, their monomials and expansions.

Open ``kernels.py`` first. It may import ``functions``. ``__init__.pyi`` lists the names.
"""

from mixnorm._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
