"""The accuracies of Table 1 of the paper on multi-class multiple kernel learning, nine sets.

Random splits of 80 % and 20 %, 21 Gaussian kernels, parameters of every method chosen by
cross-validation on the training rows. Results are kept for every split and method.

Start reading at ``command.py``; ``methods.py`` has the methods, ``paper.py`` the figures of the
paper.
"""
