"""ShareBoost and other ways to train a classifier that needs few features.

Start reading at ``command.py``; ``ours.py`` and ``benchmarks/harness/peers.py`` have the methods,
``bar.py`` the figures to reach.
"""
