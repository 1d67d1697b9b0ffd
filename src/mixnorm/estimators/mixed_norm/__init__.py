"""Classifiers and regressors under a mixed or trace norm.

Open ``classifier.py`` first, then ``base.py``.
"""
