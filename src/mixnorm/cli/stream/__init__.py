"""``mixnorm stream``: learn from rows as they come.

Open ``learn.py`` first. It may import all that ``cli`` may.
"""
