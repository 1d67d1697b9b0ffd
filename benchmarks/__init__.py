"""Benchmarks: mixnorm beside other libraries, on the same arrays, in the same run.

``python -m benchmarks --help`` lists them; ``benchmarks/README.md`` says how figures are taken.
Each has a folder: the docstring of its ``__init__.py`` is the help text, and its ``command.py`` has
``add_arguments(parser)`` and ``main(args)``. The packages themselves import nothing, since
measuring processes also run in environments that lack what the commands need.
"""
