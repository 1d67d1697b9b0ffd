"""Table 1 of the paper on multi-class multiple kernel learning: accuracies on nine datasets.

The splits are random, 80 % and 20 %, and there are 21 Gaussian kernels. Cross-validation on the
training rows chooses the parameters of every method. Results are stored by split and method.

Start reading at ``command.py``; ``methods.py`` has the methods, and ``paper.py`` the figures of
the paper.
"""
