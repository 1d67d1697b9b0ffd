"""Dask: clusters as executors, and collections as sources of rows.

Open ``cluster.py`` first; ``worker.py`` is what runs on workers, ``collections.py`` reads Dask
arrays and data frames. The package imports no other room.
"""
