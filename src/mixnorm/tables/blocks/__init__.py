"""Tables that do not fit into memory: Parquet files with columns of any type, block by block.

Open ``files.py`` first, then ``plan.py``, which makes the encoder from one pass; ``encoded.py`` is
what learners read. It imports its neighbours in ``tables``, and ``data``.
"""
