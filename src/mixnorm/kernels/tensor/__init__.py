"""Tensor kernels: functions of several rows, their monomials and expansions.

Open ``kernels.py`` first. It may import ``functions``.
"""
