"""Benchmarks that compare mixnorm with other libraries on the same arrays in the same run.

``python -m benchmarks --help`` lists them. ``benchmarks/README.md`` explains the measurements.
Each has a folder: the docstring of its ``__init__.py`` is the help text, and its ``command.py`` has
``add_arguments(parser)`` and ``main(args)``. An ``__init__.py`` imports nothing, because
measuring processes also run in environments without the packages that the commands need.
"""
