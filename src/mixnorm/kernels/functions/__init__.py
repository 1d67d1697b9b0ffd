"""Kernels as functions of two rows: formulas, distances, names, and values in blocks.

Open ``kernels.py`` first. It imports no other folder of ``kernels``.
"""
