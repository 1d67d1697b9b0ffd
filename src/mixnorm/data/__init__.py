"""Data: one view of dense and sparse tables, with products and some of the columns.

Open ``matrix.py``. The room imports no other.
"""
