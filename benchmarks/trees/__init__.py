"""Stumps and boxes beside LightGBM and XGBoost on equally many inputs, and at equal cost.

Settings of all of them are chosen on the same training rows. The trees are fitted on the columns
that they found most important, ours may read as many and has at most 300 stumps; a box has one or
two. Small trees are tuned and fitted to cost no more than ours. Costs are operations per row: for
the trees a comparison for each node passed and an addition for each tree.

Start reading at ``command.py``; ``child.py`` has the methods.
"""
