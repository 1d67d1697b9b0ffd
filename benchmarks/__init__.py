"""Benchmarks: mixnorm beside other libraries, on the same arrays, in the same run.

``python -m benchmarks --help`` lists them; ``benchmarks/README.md`` says how figures are taken.
"""
