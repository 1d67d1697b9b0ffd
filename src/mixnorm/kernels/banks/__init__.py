"""Banks: lists of kernels, on which columns, and bound to training rows.

Open ``bank.py`` first, then ``fitted.py``. It may import ``functions`` and ``grams``.
"""
