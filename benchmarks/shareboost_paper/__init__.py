"""The ShareBoost paper's experiments, beside one-vs-rest, JointBoost, mixed norms and an SVM.

``classes``: features needed for a fixed error with 2 to 36 classes, shared or each class its own.
``products``: products of two inputs, and JointBoost at equal rounds. ``norms``: mixed norms on
these products. ``bits``: copies of the same features, which mixed norms spread over. ``pieces``:
piecewise linear predictors of mnist beside a Gaussian SVM.

Start reading at ``command.py``; each part has a module of its name.
"""
