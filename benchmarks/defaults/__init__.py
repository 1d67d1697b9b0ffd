"""ShareBoost's defaults: what they cost beside the best penalty of a grid, and in time.

Every set is cut into five folds. A path with the defaults is compared with paths of seven fixed
penalties; the best of these is picked on the rows held out, so that the grid knows more than any
user can. Regret is how many points of error the default is worse. ``--beside COMMIT`` times the
default path beside that of an earlier commit. ``--penguins N`` looks at what ``mixnorm fit`` makes
of N drawn tables (:mod:`benchmarks.defaults.penguins`), and ``--pools`` at penalties of other
features than columns (:mod:`benchmarks.defaults.other_pools`).

Start reading at ``command.py``; ``child.py`` is the process that measures.
"""
