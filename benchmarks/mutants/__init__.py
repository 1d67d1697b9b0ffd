"""Mutation tests: small mistakes in the code, and how many of them the tests notice.

A mutant is the package with one small, realistic mistake in it: a comparison that includes its
bound, a sign, an axis, a factor, a missing statement. Mutants are drawn with a seed from all rooms
with algorithms, and each is tried with the tests of its room. ``mutations.py`` makes them,
``trial.py`` runs the tests, and ``equivalent.py`` lists mutants that no caller could notice, with
the reasons. Start reading at ``command.py``.
"""
