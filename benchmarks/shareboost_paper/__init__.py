"""The ShareBoost paper's experiments, with one-vs-rest, JointBoost, mixed norms and an SVM.

``classes``: the features needed for a fixed error with 2 to 36 classes, shared or separate for each
class. ``products``: products of two inputs, and JointBoost with as many rounds. ``norms``: mixed
norms on these products. ``bits``: copies of the same features, over which mixed norms spread their
weights. ``pieces``: piecewise linear predictors of mnist, and a Gaussian SVM.

Start reading at ``command.py``; each part has a module of the same name.
"""
