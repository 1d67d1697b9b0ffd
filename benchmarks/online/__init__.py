"""Online learners, Vowpal Wabbit, scikit-learn and river: one pass over raw rows.

Rows come in one fixed random order. Rows per CPU second are those of the second pass in a process,
by a fresh model. A mistake is a row that is predicted wrong before it is learned from. The parts
are ``passes`` over images, letters and texts; ``tables``, mistakes on raw tables; ``affine``, the
change of mistakes with units and origins of columns; ``speed`` and ``first``, rows per second and
the first call compared with an earlier commit; and ``memory``.

Start reading at ``command.py``; ``learners.py`` has the learners, and ``parts.py`` all parts except
``passes``.
"""
