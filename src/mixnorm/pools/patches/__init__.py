"""Patches: templates that are held against places of an image.

Open ``pool.py`` first. It may import the rest of ``pools``.
"""
