"""Data: one interface to dense, sparse and memory-mapped tables, for products and statistics.

Open ``dense.py`` first, which shows what a matrix can do; ``sparse.py`` does the same for sparse
tables. The room imports no other room. ``__init__.pyi`` lists the names.
"""

from mixnorm._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
