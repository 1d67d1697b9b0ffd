"""Pools: where the columns that the greedy engine chooses come from.

Open ``columns.py`` first, the plain columns of the data; each other file makes columns of another
kind, and ``patches`` has a folder. The room may import ``data``, ``kernels``, ``losses`` and
``norms``. ``__init__.pyi`` lists the names.
"""

from mixnorm._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
