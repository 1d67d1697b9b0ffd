"""ShareBoost with patches on mnist, compared with trees, an SVM and a neural network.

The training images are original or deformed, and taken as they are or set upright first. One fit
gives the errors for all numbers of features. Seconds are reported by stage: loading, deforming,
setting upright, learning templates, computing responses, and rounds of the greedy engine.
``--device cuda`` puts images and labels on the GPU. With ``--holdout`` the errors are those of
10,000 held-out training images, by which the settings (``variants.py``) were chosen.

Start reading at ``command.py``; ``child.py`` is the process that measures.
"""
