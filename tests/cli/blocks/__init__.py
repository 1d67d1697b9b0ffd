"""``mixnorm fit`` and ``predict`` on Parquet files, block by block."""
