"""Kernels: functions of two rows, banks of them, and their matrices.

Open ``functions/kernels.py`` first, then ``banks/bank.py``; ``grams`` has the matrices, ``tensor``
functions of several rows. The room imports no other. ``__init__.pyi`` lists the names.
"""

from mixnorm._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
