"""What batch learners need of a table: its statistics, targets, moments, and columns.

Open ``survey.py`` first. The package imports ``blocks`` and the rest of ``data``.
"""
