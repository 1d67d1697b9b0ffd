"""lp-norm regression with tensor kernels: paths of several solvers, and the paper's tables.

A path has 100 values of gamma on 60 rows of wpbc. mixnorm, a textbook Newton method on the same
dual and FISTA on the primal solve it to relative gaps of 1e-8 and 1e-3. scikit-learn's Lasso and
ridge use explicit features. Other parts have other losses, up to 800 rows, and test errors over
random splits.

Start reading at ``command.py``; ``methods.py`` has the methods of the paths, and ``models.py``
those of the tables.
"""
