"""Tables that arrive row by row: their rows, the kinds of their columns, and their features.

Open ``reader.py`` first. It may import the rest of ``tables``.
"""
