"""The arguments of the command line: the parser, the types of values, the examples.

Open ``parser.py`` first.
"""
