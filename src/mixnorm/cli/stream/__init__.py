"""``mixnorm stream``: learn from rows as they come.

Open ``learn.py`` first.
"""
