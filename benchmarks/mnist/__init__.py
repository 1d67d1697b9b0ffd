"""ShareBoost with patches on mnist, original and deformed images, beside trees, an SVM, a network.

One fit gives the errors of all numbers of features; images are taken as they are, or set upright
first. Seconds are told by stage: loading, deforming, setting upright, learning templates, computing
responses, rounds of the greedy engine. ``--device cuda`` has images and labels on the GPU.
``--holdout`` leaves the test part alone: errors are those of 10,000 training images, by which the
settings (``variants.py``) were chosen.

Start reading at ``command.py``; ``child.py`` is the process that measures.
"""
