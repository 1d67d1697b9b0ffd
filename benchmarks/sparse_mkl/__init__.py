"""A few kernels out of thousands, compared with himalaya, EasyMKL and scikit-learn.

The data are additive designs, and the kernels are Gaussians of ten widths on every column. The
parts measure the time of a scan of 5000 kernels, whether it finds the best kernel, a model of 12
kernels, errors and costs of all methods, and whether the relevant columns are found. The same inner
folds tune all methods.

Start reading at ``command.py``; ``methods.py`` has the methods, ``child.py`` the measuring process.
"""
