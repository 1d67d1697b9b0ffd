"""What several families of estimators share: checks, class labels, progress, arrays, units.

Open ``inputs.py`` first. No other room may import this one.
"""
