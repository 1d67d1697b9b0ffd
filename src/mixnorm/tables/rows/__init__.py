"""Tables that come row by row: read, told apart by column, turned into numbers.

Open ``reader.py`` first. It may import the rest of ``tables``.
"""
