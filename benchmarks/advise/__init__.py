"""Advice on norms: how often it is right on synthetic and real data, and how long it takes.

Each norm is fitted to every dataset with its own best penalty, and tested on rows that no choice
used. Advice is right if the test error of its norm is within a standard error of the smallest. It
must also report ties, and data on which nothing helps.

Start reading at ``command.py``; ``data.py`` has the synthetic designs, and ``child.py`` is the
process that measures.
"""
