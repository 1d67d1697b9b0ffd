"""Stumps and boxes, LightGBM and XGBoost with equally many inputs, and at equal cost.

All settings are chosen on the same training rows. The trees are fitted on the columns that they
found most important. Our models may read as many columns, and have at most 300 stumps, of which a
box takes one or two. Small trees are tuned to cost no more than our models. Cost is in operations
per row; for trees it is a comparison for each node on the way and an addition for each tree.

Start reading at ``command.py``; ``child.py`` has the methods.
"""
