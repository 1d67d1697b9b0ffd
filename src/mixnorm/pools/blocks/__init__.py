"""Pools bound to tables of row blocks: atoms of data that need not fit into memory.

Open ``base.py`` first, then ``columns.py``. The package imports ``data``, and the pools beside it.
"""
