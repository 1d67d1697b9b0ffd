"""Data larger than memory: ``mixnorm fit`` and ``predict`` on Parquet files, block by block.

Open ``files.py`` first, which decides when this is done; ``data.py`` and ``search.py`` are the
fit. It imports its neighbours in ``cli``, and rooms by their packages.
"""
