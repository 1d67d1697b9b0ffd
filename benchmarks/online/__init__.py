"""Online learners beside Vowpal Wabbit, scikit-learn and river: one pass over raw rows.

Rows come in one fixed random order. The rows learned from in a CPU second are those of the second
pass in a process, by a fresh model; mistakes are rows predicted wrong before they were learned
from. ``--parts`` has ``passes`` over images, letters and texts; ``tables``, the mistakes on raw
tables; ``affine``, what other units and origins of columns change in them; ``speed`` and ``first``,
rows a second and the first call beside an earlier commit; and ``memory``.

Start reading at ``command.py``; ``learners.py`` has what is run, ``parts.py`` all parts but
``passes``.
"""
