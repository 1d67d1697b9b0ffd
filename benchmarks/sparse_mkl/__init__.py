"""A few kernels out of thousands, beside himalaya, EasyMKL and scikit-learn.

Gaussian kernels of ten widths on every column of additive designs: what a scan of 5000 of them
takes, whether it finds the best, a model of 12, errors and costs beside others, all tuned by the
same inner folds, and whether the relevant columns are found.

Start reading at ``command.py``; ``methods.py`` has the methods, ``child.py`` the measuring process.
"""
