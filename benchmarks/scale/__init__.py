"""Data larger than memory: fits by blocks beside fits in memory, on a cluster, and beside peers.

The benchmark draws its data once, into a cache folder. The table has 25 columns that matter, whose
strengths differ by steps of 5 %, and is stored as Parquet. Each measured fit is a process of its
own. Times are wall-clock seconds on all cores.

Start reading at ``command.py``; ``parts.py`` says what is run, ``child.py`` is the process that
measures, ``data.py`` draws the tables, and ``report.py`` compares the figures with the bar.
"""
