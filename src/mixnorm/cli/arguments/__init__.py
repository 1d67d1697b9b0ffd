"""The arguments of the command line: the parser, the types of values, the examples.

Open ``parser.py`` first. It imports no other part of the package but the version.
"""
