"""Parquet files as a source of rows.

Open ``parquet.py`` first; ``footers.py`` finds the files and reads their footers. The package
imports no other room.
"""
