"""ShareBoost's defaults: their error compared with the best penalty of a grid, and their time.

Every dataset is cut into five folds. A path with the defaults is compared with paths at seven fixed
penalties. The best of these is chosen on the held-out rows, so the grid knows more than any user
can. Regret is the error of the default less that of the grid, in points. ``--beside COMMIT`` times
the
default path beside that of an earlier commit. ``--penguins N`` runs
``mixnorm fit`` on N drawn tables (:mod:`benchmarks.defaults.penguins`). ``--pools`` compares
penalties for pools other than columns (:mod:`benchmarks.defaults.other_pools`).

Start reading at ``command.py``; ``child.py`` is the process that measures.
"""
