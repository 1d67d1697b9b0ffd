"""lp-norm regression with tensor kernels: paths beside other solvers, and the paper's tables.

100 values of gamma on 60 rows of wpbc by mixnorm, by a textbook Newton method on the same dual and
by FISTA on the primal, to relative gaps of 1e-8 and 1e-3; by scikit-learn's Lasso and ridge on
explicit features; other losses; up to 800 rows; and test errors over random splits.

Start reading at ``command.py``; ``methods.py`` has the methods of the paths, ``models.py`` those of
the tables.
"""
