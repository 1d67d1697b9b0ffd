"""Losses of single rows, compiled: apart from ``losses``, which must not load numba."""
