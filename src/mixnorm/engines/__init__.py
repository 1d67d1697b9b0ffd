"""Engines: the algorithms, written over losses, norms and pools, without scikit-learn."""
