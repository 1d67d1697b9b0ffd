"""Shared by families of estimators: base classes, parameters, checks, progress, arrays, units.

Open ``inputs.py`` first. No other room may import this one.
"""
