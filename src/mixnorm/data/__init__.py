"""Data: one view of dense, sparse and memory-mapped tables, with products and some of the columns.

Open ``dense.py`` first, which says what a matrix can do; ``sparse.py`` has the other kind. The room
imports no other. ``__init__.pyi`` lists the names.
"""

from mixnorm._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
