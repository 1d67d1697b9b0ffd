"""The arguments of the command line: the parser, the types of values, and the examples.

Open ``parser.py`` first. It imports only the version and the names of pools.
"""
